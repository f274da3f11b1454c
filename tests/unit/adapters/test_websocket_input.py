"""Messages of a WebSocket, of a server in this process."""

import contextlib
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from websockets.exceptions import ConnectionClosed
from websockets.sync.server import ServerConnection, serve

from espha.adapters.config import Held
from espha.adapters.websocket_input.run import Messages, Socket, _records
from espha.adapters.websocket_input.spec import InputWebsocket
from espha.reader import read_project

WINDOW = read_project(
    b'<project name="p"><contqueries><contquery name="q"><windows>'
    b'<window-source name="w"><schema><fields>'
    b'<field name="id" type="int32" key="true"/><field name="x" type="string"/>'
    b"</fields></schema></window-source></windows></contquery></contqueries></project>"
).windows["q/w"]


class Peer:
    """Sends what it is told to; each connection gets the messages that are due then."""

    def __init__(self) -> None:
        self.messages: list[list[str | bytes]] = []
        self.headers: list[str] = []
        self.url = ""

    def answer(self, connection: ServerConnection) -> None:
        """Send the next messages, and wait until the other side goes, if there are no more."""
        assert connection.request is not None
        self.headers.append(connection.request.headers.get("Authorization", ""))
        due = self.messages.pop(0) if self.messages else []
        for message in due:
            connection.send(message)
        if not self.messages:
            try:
                connection.recv()
            except ConnectionClosed:
                return


@pytest.fixture
def peer() -> Iterator[Peer]:
    made = Peer()
    with serve(made.answer, "127.0.0.1", 0) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        made.url = f"ws://127.0.0.1:{server.socket.getsockname()[1]}/"
        yield made
        server.shutdown()
        thread.join()


@pytest.fixture
def opened(peer: Peer) -> Iterator[Callable[..., Socket]]:
    made: list[Socket] = []

    def open_(**more: Any) -> Socket:
        given = InputWebsocket.model_validate({"address": peer.url, **more})
        made.append(Socket(given, _records(WINDOW, given), Messages("a"), "Bearer T"))
        return made[-1]

    yield open_
    for one in made:
        one.stop()


def rows(source: Socket, count: int) -> list[str]:
    """Return so many rows; what comes is committed at once."""
    found: list[str] = []
    end = time.monotonic() + 10
    while len(found) < count and time.monotonic() < end:
        with contextlib.suppress(Held):
            found += [value.decode().replace(" ", "") for value, _ in source.poll()]
        source.committed()
        time.sleep(0.01)
    return found


def test_each_message_is_a_row_or_several(peer: Peer, opened: Callable[..., Socket]) -> None:
    peer.messages = [
        [
            '{"id": 1, "x": "a"}',
            '{"events": [{"event": {"opcode": "upsert", "id": 2, "x": "b"}}, {"id": 3}]}',
            b'[{"id": 4}]',
            "[1]",
        ]
    ]
    source = opened()
    found = rows(source, 5)
    assert found[:4] == ["I,N,1,a", "P,N,2,b", "I,N,3,", "I,N,4,"]
    assert found[4].startswith("notarow,")
    assert peer.headers == ["Bearer T"]
    assert source.position.progress(0).position == "4 messages, 5 rows"


def test_it_connects_again_when_the_peer_has_gone(
    peer: Peer, opened: Callable[..., Socket]
) -> None:
    peer.messages = [["I,N,1,a"], ["I,N,2,b"]]
    source = opened(format={"type": "csv"})
    assert rows(source, 2) == ["I,N,1,a", "I,N,2,b"]
    assert len(peer.headers) == 2


def test_a_peer_that_is_not_there_is_named(opened: Callable[..., Socket]) -> None:
    source = opened(address="ws://127.0.0.1:1/x?token=secret")
    end = time.monotonic() + 10
    said = ""
    while not said and time.monotonic() < end:
        try:
            source.poll()
        except Held as held:
            said = str(held)
        time.sleep(0.01)
    assert "no connection" in said
    assert "secret" not in said + source.name


def test_what_is_too_large_ends_the_connection_and_is_said(
    peer: Peer, opened: Callable[..., Socket]
) -> None:
    peer.messages = [["x" * 5000], ["I,N,1,a"]]
    source = opened(format={"type": "csv"}, maxBytes=1024)
    assert rows(source, 1) == ["I,N,1,a"]

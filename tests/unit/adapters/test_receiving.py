"""Sources that others send to: HTTP and sockets, with a publisher that commits when it is told."""

import json
import socket
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any

import pytest
import urllib3

from espha.adapters.config import Held
from espha.adapters.formats.incoming import incoming
from espha.adapters.formats.spec import LinesIn
from espha.adapters.http_input import run as http
from espha.adapters.http_input.spec import InputHttp
from espha.adapters.receiving import Intake, Parcel, Receiver
from espha.adapters.remembered import Position, digest
from espha.adapters.socket_input import run as sockets
from espha.adapters.socket_input.lines import Line, Lines
from espha.adapters.socket_input.spec import InputSocket
from espha.local.ports import HOST
from espha.model import Window
from espha.reader import read_project
from espha.records.rows import MAX_RECORD
from support.servers import wait_until

PLAIN = LinesIn(opcode=False, flags=False)


@pytest.fixture
def window() -> Window:
    """A source of a key and a text."""
    text = (
        '<project name="p"><contqueries><contquery name="q"><windows>'
        '<window-source name="w" index="pi_EMPTY"><schema><fields>'
        '<field name="id" type="int32" key="true"/><field name="text" type="string"/>'
        "</fields></schema></window-source></windows></contquery></contqueries></project>"
    )
    return read_project(text.encode()).windows["q/w"]


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        port: int = probe.getsockname()[1]
        return port


class Publisher:
    """Takes what a source has, and says that it is committed; or is slow to."""

    def __init__(self, source: Receiver[Any, Any]) -> None:
        self.source = source
        self.rows: list[str] = []
        self.commits = threading.Event()
        self.commits.set()
        self.said: set[str] = set()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while not self._ended.wait(0.005):
            try:
                found = self.source.poll()
            except Held as held:
                self.said.add(str(held))
                continue
            if found:
                self.commits.wait()
                self.rows += [value.decode() for value, _ in found]
                self.source.committed()

    def end(self) -> None:
        """End it."""
        self.commits.set()
        self._ended.set()
        self._thread.join()
        self.source.stop()


@contextmanager
def publishing(source: Receiver[Any, Any]) -> Iterator[Publisher]:
    made = Publisher(source)
    try:
        yield made
    finally:
        made.end()


class Web:
    """A client of an HTTP source."""

    def __init__(self, port: int) -> None:
        self.pool = urllib3.PoolManager()
        self.url = f"http://{HOST}:{port}/rows"
        wait_until(self._answers, 30, "somebody listens")

    def _answers(self) -> bool:
        with suppress(urllib3.exceptions.HTTPError):
            return self.pool.request("GET", self.url, retries=False).status == 405
        return False

    def post(self, body: bytes, **headers: str) -> tuple[int, Mapping[str, Any]]:
        """Return code and content of the answer."""
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        answer = self.pool.request("POST", self.url, body=body, headers=named, retries=False)
        return answer.status, json.loads(answer.data) if answer.status == 200 else {}


def posts(window: Window, port: int, found: Any = None, **given: Any) -> http.Posts:
    settings = InputHttp(port=port, format=PLAIN, **given)
    made = incoming(window, settings.format)
    return http.Posts(settings, made.records, Position.of("web", found), HOST)


def test_a_post_is_answered_when_its_rows_are_committed(window: Window) -> None:
    port = free_port()
    with publishing(posts(window, port)) as publisher:
        web = Web(port)
        publisher.commits.clear()
        answers: list[int] = []
        thread = threading.Thread(target=lambda: answers.append(web.post(b"1,a\n2,b\n")[0]))
        thread.start()
        wait_until(lambda: publisher.source.position.rows == 2, 30, "the rows")
        assert answers == []
        publisher.commits.set()
        thread.join(30)
        assert answers == [200]
        assert publisher.rows == ["I,N,1,a", "I,N,2,b"]


def test_only_who_bears_the_authorization_may_post(window: Window) -> None:
    port = free_port()
    settings = InputHttp(port=port, format=PLAIN)
    records = incoming(window, PLAIN).records
    source = http.Posts(settings, records, Position.of("web", None), HOST, "Bearer gehéim")
    with publishing(source) as publisher:
        web = Web(port)
        assert web.post(b"1,a\n")[0] == 401
        assert web.post(b"2,a\n", Authorization="Bearer other")[0] == 401
        right = "Bearer gehéim".encode().decode("latin-1")
        assert web.post(b"3,a\n", Authorization=right)[0] == 200
        assert publisher.rows == ["I,N,3,a"]


def test_what_is_sent_again_under_its_id_is_answered_and_not_published(window: Window) -> None:
    port = free_port()
    source = posts(window, port)
    with publishing(source) as publisher:
        web = Web(port)
        first = web.post(b"1,a\n", Idempotency_Key="x")
        again = web.post(b"1,a\n", Idempotency_Key="x")
        other = web.post(b"1,a\n")
        assert first == (200, {"rows": 1, "repeated": False})
        assert again == (200, {"rows": 1, "repeated": True})
        assert other == (200, {"rows": 1, "repeated": False})
        assert publisher.rows == ["I,N,1,a"] * 2
    kept = json.loads(source.position.to_header())
    port = free_port()
    with publishing(posts(window, port, kept)) as publisher:
        assert Web(port).post(b"1,a\n", Idempotency_Key="x")[1]["repeated"]
        assert publisher.rows == []


def test_two_posts_under_one_id_at_the_same_time_are_one(window: Window) -> None:
    port = free_port()
    with publishing(posts(window, port)) as publisher:
        web = Web(port)
        publisher.commits.clear()
        answers: list[bool] = []

        def send() -> None:
            answers.append(Web(port).post(b"1,a\n", Idempotency_Key="x")[1]["repeated"])

        threads = [threading.Thread(target=send) for _ in range(4)]
        for thread in threads:
            thread.start()
        wait_until(lambda: publisher.source.position.rows == 1, 30, "the first one")
        publisher.commits.set()
        for thread in threads:
            thread.join(30)
        assert web.post(b"2,b\n")[0] == 200
        assert sorted(answers) == [False, True, True, True]
        assert publisher.rows == ["I,N,1,a", "I,N,2,b"]


def test_only_so_many_ids_are_remembered(window: Window) -> None:
    source = posts(window, 2000, ids=2)
    position = source.position
    for name in "abc":
        rows, position = source.accept(Parcel([b"x"], 1, digest(name)), position)
        assert rows == [b"x"]
    assert position.ids == (digest("b"), digest("c"))
    assert source.bare(position).ids == ()


def test_what_is_too_large_or_no_post_is_refused(window: Window) -> None:
    port = free_port()
    with publishing(posts(window, port, max_bytes=1024)) as publisher:
        web = Web(port)
        assert web.post(b"x" * 2000)[0] == 413
        answer = web.pool.request(
            "POST", web.url, body=iter([b"x" * 900] * 3), retries=False, chunked=True
        )
        assert answer.status == 413
        assert web.post(b"\n\n")[1] == {"rows": 0, "repeated": False}
        assert web.post(b'1,"open\n')[0] == 200
        assert publisher.rows[0].startswith("not a row,http port")


def test_what_waits_for_its_commit_has_a_bound(window: Window) -> None:
    port = free_port()
    source = posts(window, port)
    source._intake._limit = 2000
    with publishing(source) as publisher:
        web = Web(port)
        publisher.commits.clear()
        body = b"1," + b"x" * 1500 + b"\n"
        thread = threading.Thread(target=lambda: web.post(body))
        thread.start()
        wait_until(lambda: source.position.rows == 1, 30, "the first one")
        assert web.post(body)[0] == 429
        publisher.commits.set()
        thread.join(30)
        assert web.post(body)[0] == 200


def test_a_port_that_is_taken_is_said_and_waited_for(window: Window) -> None:
    with socket.create_server((HOST, 0)) as other:
        port = other.getsockname()[1]
        source = posts(window, port)
        made = Publisher(source)
        wait_until(lambda: bool(made.said), 30, "what is wrong")
    try:
        assert any("trying again" in said for said in made.said)
        assert Web(port).post(b"1,a\n")[0] == 200
    finally:
        made.end()


def test_lines_are_cut_within_bounds() -> None:
    lines = Lines()
    assert list(lines.feed(b"a\nb")) == [Line(b"a", 1)]
    assert list(lines.feed(b"c\n\n")) == [Line(b"bc", 2), Line(b"", 0)]
    size = 0
    for _ in range(40):
        assert not list(lines.feed(b"x" * 50_000))
        size += 50_000
        assert len(lines._begin) <= MAX_RECORD + 1
    (long,) = lines.feed(b"\n")
    assert long.long
    assert long.size == size
    assert lines.rest() is None


class Peer:
    """What sends lines."""

    def __init__(self, connection: socket.socket) -> None:
        self.connection = connection
        connection.settimeout(30)
        self._file = connection.makefile("rb")

    def send(self, data: bytes) -> None:
        """Send bytes."""
        self.connection.sendall(data)

    def hear(self) -> bytes:
        """Return the next line."""
        return self._file.readline()

    def hear_until(self, number: int) -> None:
        """Wait until it is told a number."""
        while int(self.hear()) < number:
            pass

    def close(self) -> None:
        """Close the connection."""
        self._file.close()
        self.connection.close()


def peer_of(port: int) -> Peer:
    found: list[socket.socket] = []

    def connects() -> bool:
        with suppress(OSError):
            found.append(socket.create_connection((HOST, port), 5))
        return bool(found)

    wait_until(connects, 30, "somebody listens")
    return Peer(found[0])


def lines_source(window: Window, found: Any = None, **given: Any) -> sockets.Sockets:
    settings = InputSocket(format=PLAIN, **given)
    made = incoming(window, settings.format)
    return sockets.Sockets(settings, made, sockets.position_of("lines", found), HOST)


def arrived(publisher: Publisher, count: int) -> Callable[[], bool]:
    return lambda: len(publisher.rows) >= count


def test_lines_of_several_peers_are_published(window: Window) -> None:
    port = free_port()
    with publishing(lines_source(window, port=port)) as publisher:
        one, two = peer_of(port), peer_of(port)
        one.send(b"1,a\n2,")
        two.send(b"3,c\r\n")
        one.send(b"b\n4,d")
        wait_until(arrived(publisher, 3), 30, "whole lines")
        one.close()  # what ends with the connection is a line, too
        two.close()
        wait_until(arrived(publisher, 4), 30, "the last line")
        assert sorted(publisher.rows) == ["I,N,1,a", "I,N,2,b", "I,N,3,c", "I,N,4,d"]


def test_a_long_line_is_one_bad_row_and_others_go_on(window: Window) -> None:
    port = free_port()
    with publishing(lines_source(window, port=port)) as publisher:
        peer = peer_of(port)
        peer.send(b"x" * 1_000_000 + b"\n1,a\n")
        wait_until(arrived(publisher, 2), 30, "both")
        peer.close()
        assert publisher.rows[0].startswith("not a row,")
        assert "a line of 1000000 bytes" in publisher.rows[0]
        assert publisher.rows[1] == "I,N,1,a"


def test_numbered_lines_count_once_across_connections_and_lives(window: Window) -> None:
    port = free_port()
    source = lines_source(window, port=port, ids=True)
    with publishing(source) as publisher:
        peer = peer_of(port)
        peer.send(b"s1\n")
        assert peer.hear() == b"0\n"
        peer.send(b"0 1,a\n3 2,b\n")
        peer.hear_until(4)
        peer.close()
        peer = peer_of(port)
        peer.send(b"s1\n")
        assert peer.hear() == b"4\n"
        peer.send(b"0 1,a\n3 2,b\n7 3,c\n")
        peer.hear_until(8)
        peer.close()
        assert publisher.rows == ["I,N,1,a", "I,N,2,b", "I,N,3,c"]
    port = free_port()
    kept = json.loads(source.position.to_header())
    with publishing(lines_source(window, kept, port=port, ids=True)):
        peer = peer_of(port)
        peer.send(b"s1\n")
        assert peer.hear() == b"8\n"
        peer.send(b"no number\n")
        assert b"number and a blank" in peer.hear()
        assert peer.hear() == b""
        peer.close()


def test_what_is_not_committed_is_not_said_to_be(window: Window) -> None:
    port = free_port()
    source = lines_source(window, port=port, ids=True)
    with publishing(source) as publisher:
        peer = peer_of(port)
        peer.send(b"s1\n")
        assert peer.hear() == b"0\n"
        publisher.commits.clear()
        peer.send(b"0 1,a\n")
        wait_until(lambda: source.position.lines == 1, 30, "the line")
        other = peer_of(port)
        other.send(b"s1\n")
        assert other.hear() == b"0\n"
        publisher.commits.set()
        peer.hear_until(1)
        other.close()
        peer.close()


def test_a_peer_that_goes_away_is_connected_to_again(window: Window) -> None:
    with socket.create_server((HOST, 0)) as server:
        server.settimeout(30)
        port = server.getsockname()[1]
        with publishing(lines_source(window, connect=f"{HOST}:{port}")) as publisher:
            for number in range(2):
                connection, _ = server.accept()
                connection.sendall(b"%d,a\n" % number)
                connection.close()
            wait_until(arrived(publisher, 2), 30, "both lines")
            assert publisher.rows == ["I,N,0,a", "I,N,1,a"]


def test_a_peer_that_is_faster_than_commits_has_to_wait() -> None:
    intake: Intake[str] = Intake(100)
    assert intake.reserve(1000)
    assert not intake.reserve(1)
    intake.put(Parcel([b"x"], 1000, ""))
    assert len(intake.take(10)) == 1
    intake.release(1000)
    assert intake.reserve(100)
    assert not intake.reserve(1)


def test_what_waits_is_what_is_not_committed(window: Window) -> None:
    port = free_port()
    with publishing(posts(window, port)) as publisher:
        publisher.commits.clear()
        poster = threading.Thread(target=lambda: Web(port).post(b"1,a\n"))
        poster.start()
        wait_until(lambda: publisher.source.position.rows == 1, 30, "the row is polled")
        assert publisher.source.behind().amount > 0
        publisher.commits.set()
        poster.join(30)
        wait_until(lambda: publisher.source.behind().amount == 0, 30, "nothing waits")

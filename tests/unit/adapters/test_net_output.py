"""Targets on the net: requests and lines, to peers that fail."""

import contextlib
import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import cast

import pytest
from pydantic import ValidationError

from espha.adapters.acknowledged import Acknowledged, KeptOffset
from espha.adapters.config import ConfigError
from espha.adapters.copying import Taken, Waiting
from espha.adapters.formats.outgoing import Outgoing
from espha.adapters.formats.spec import LinesIn, LinesOut
from espha.adapters.http_output.run import Output, poster
from espha.adapters.http_output.spec import OutputHttp
from espha.adapters.output_records import Rejected
from espha.adapters.socket_output import peers
from espha.adapters.socket_output.peers import Peer as AnyPeer
from espha.adapters.socket_output.peers import peer_of
from espha.adapters.socket_output.run import Numbered, Plain
from espha.adapters.socket_output.run import Output as Lines
from espha.adapters.socket_output.spec import OutputSocket
from espha.local.ports import HOST, free_ports
from espha.local.waiting import wait_until

WEB = OutputHttp(address="http://127.0.0.1:1/x", max_rows=3)


class _Kept:
    """A position; what of it was kept lives on."""

    def __init__(self, now: Acknowledged) -> None:
        self.now = now

    def keep(self, offset: int, until: int = 0) -> None:
        self.now = replace(self.now, offset=offset, until=until)


class _AsItIs:
    def payload(self, record: Taken) -> bytes | Rejected:
        return record.value


MADE = cast(Outgoing, _AsItIs())


class _Server:
    """Remembers what is posted; fails when it is told to."""

    def __init__(self) -> None:
        self.bodies: list[bytes] = []
        self.ids: list[str] = []
        self.fails = 0

    def post(self, body: bytes, headers: Mapping[str, str]) -> None:
        self.bodies.append(body)
        self.ids.append(headers["Idempotency-Key"])
        if self.fails:
            self.fails -= 1
            raise OSError("no answer")


def taken(*offsets: int) -> list[Taken]:
    return [Taken(offset, b"r%d" % offset) for offset in offsets]


def output(kept: _Kept, server: _Server) -> Output:
    return Output(WEB, MADE, "x.O", cast(KeptOffset, kept), server.post)


def test_a_format_without_lines_is_refused() -> None:
    """In bytes a newline ends nothing."""
    for kind in (LinesIn, LinesOut):
        with pytest.raises(ValidationError, match="'csv' or 'json'"):
            kind.model_validate({"type": "avro"})


def test_rows_are_posted_in_requests_with_ids_of_their_own() -> None:
    kept, server = _Kept(Acknowledged("t")), _Server()
    made = output(kept, server)
    made.append(taken(0, 1, 2, 3), 4)
    assert server.bodies == [b"r0\nr1\nr2\n", b"r3\n"]
    assert server.ids == ["t-0-3", "t-3-4"]
    assert made.offset == 4


def test_a_request_without_an_answer_is_sent_again_as_it_was() -> None:
    kept, server = _Kept(Acknowledged("t")), _Server()
    made = output(kept, server)
    server.fails = 1
    with pytest.raises(OSError, match="no answer"):
        made.append(taken(0, 1), 2)
    made.append(taken(0, 1), 2)
    assert server.bodies == [b"r0\nr1\n"] * 2
    assert server.ids == ["t-0-2"] * 2


def test_after_a_kill_the_same_request_is_sent_however_the_records_come() -> None:
    """The records come one by one, and others with them: the request still is the same one."""
    kept, server = _Kept(Acknowledged("t")), _Server()
    server.fails = 1
    with contextlib.suppress(OSError):
        output(kept, server).append(taken(0, 1), 2)
    again = output(kept, server)
    again.append([], 0)
    again.append(taken(0), 1)
    assert len(server.bodies) == 1
    again.append(taken(1, 2), 3)
    assert server.bodies[1:] == [b"r0\nr1\n", b"r2\n"]
    assert server.ids[1:] == ["t-0-2", "t-2-3"]
    assert (again.offset, kept.now.until) == (3, 0)


def test_a_request_whose_records_retention_has_removed_is_over() -> None:
    kept, server = _Kept(Acknowledged("t", 0, 2)), _Server()
    made = output(kept, server)
    made.append([], 5)
    made.append(taken(5), 6)
    assert server.bodies == [b"r5\n"]
    assert made.offset == 6


class Peer:
    """A server of lines that takes one connection after the other."""

    def __init__(self, talk: Callable[[socket.socket], None], receives: int = 0) -> None:
        self._talk = talk
        self._server = socket.create_server((HOST, 0))
        if receives:
            self._server.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receives)
        self.address = f"{HOST}:{self._server.getsockname()[1]}"
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = self._server.accept()
                with connection, contextlib.suppress(OSError):
                    connection.settimeout(30)
                    self._talk(connection)

    def close(self) -> None:
        """Stop to listen."""
        with contextlib.suppress(OSError):
            self._server.shutdown(socket.SHUT_RDWR)
        self._server.close()


@contextlib.contextmanager
def peer(talk: Callable[[socket.socket], None], receives: int = 0) -> Iterator[Peer]:
    """Run a peer; `receives`: bytes that wait there until it reads them, 0: as usual."""
    made = Peer(talk, receives)
    try:
        yield made
    finally:
        made.close()


def answers(*parts: bytes) -> Callable[[socket.socket], None]:
    """Return what reads a request's head and body, then sends parts of an answer."""

    def talk(connection: socket.socket) -> None:
        data = b""
        while b"\r\n\r\nbody" not in data:
            data += connection.recv(65536)
        for part in parts:
            connection.sendall(part)

    return talk


def test_what_is_no_yes_is_said_without_secrets() -> None:
    with peer(answers(b"HTTP/1.1 401 No\r\nContent-Length: 5\r\n\r\nno...")) as server:
        given = OutputHttp(address=f"http://{server.address}/x")
        with pytest.raises(OSError, match=r"HTTP 401: no\.\.\.$") as found:
            poster(given, "Bearer secret")(b"body", {})
        assert "secret" not in str(found.value)


def test_a_header_that_cannot_be_sent_is_not_said() -> None:
    with peer(answers()) as server:
        given = OutputHttp(address=f"http://{server.address}/x")
        with pytest.raises(OSError, match=r"no answer: ValueError$") as found:
            poster(given, "Bearer a\nsecret")(b"body", {})
    assert found.value.__suppress_context__


def test_a_server_that_says_nothing_is_left_in_time() -> None:
    over = threading.Event()

    def silent(_: socket.socket) -> None:
        over.wait(30)

    with peer(silent) as server:
        given = OutputHttp(address=f"http://{server.address}/x", timeout_s=0.1)
        with pytest.raises(OSError, match="no answer: ReadTimeoutError"):
            poster(given, "")(b"body", {})
        over.set()


def test_an_endless_answer_is_not_read() -> None:
    head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    with peer(answers(head, b"5\r\nhello\r\n")) as server:
        poster(OutputHttp(address=f"http://{server.address}/x"), "")(b"body", {})


CHUNKED = b"Transfer-Encoding: chunked\r\n\r\n"
GZIP = b"Content-Encoding: gzip\r\nContent-Length: 4\r\n\r\n"


@contextlib.contextmanager
def answering(answer: bytes, *, ends: bool) -> Iterator[OutputHttp]:
    """Run a server that says `answer`, and then nothing, or closes the connection."""
    over = threading.Event()

    def talk(connection: socket.socket) -> None:
        answers(answer)(connection)
        if not ends:
            over.wait(30)

    with peer(talk) as server:
        yield OutputHttp(address=f"http://{server.address}/x", timeout_s=0.1)
        over.set()


@pytest.mark.parametrize("ends", [False, True])
@pytest.mark.parametrize("rest", [CHUNKED, CHUNKED + b"no size", GZIP + b"no..", GZIP, b"\r\n"])
@pytest.mark.parametrize("status", [b"200 OK", b"204 Nothing"])
def test_a_yes_counts_whatever_follows_it(status: bytes, rest: bytes, ends: bool) -> None:
    with answering(b"HTTP/1.1 %s\r\n%s" % (status, rest), ends=ends) as given:
        poster(given, "")(b"body", {})


@pytest.mark.parametrize("ends", [False, True])
@pytest.mark.parametrize(("rest", "said"), [(CHUNKED, ""), (GZIP + b"no..", "no.."), (GZIP, "")])
def test_a_no_is_said_also_if_its_text_cannot_be_read(rest: bytes, said: str, ends: bool) -> None:
    with (
        answering(b"HTTP/1.1 503 No\r\n" + rest, ends=ends) as given,
        pytest.raises(OSError, match=rf"answered with HTTP 503: {said}$"),
    ):
        poster(given, "")(b"body", {})


def test_the_connection_of_a_yes_that_has_ended_is_used_again() -> None:
    connections: list[socket.socket] = []

    def talk(connection: socket.socket) -> None:
        connections.append(connection)
        for _ in range(2):
            answers(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")(connection)

    with peer(talk) as server:
        post = poster(OutputHttp(address=f"http://{server.address}/x"), "")
        post(b"body", {})
        post(b"body", {})
    assert len(connections) == 1


class _Stream:
    """A peer with numbers: takes so many lines of each connection, and remembers them.

    Attributes:
        early: the numbers that came, and are below the one that it has asked for.
    """

    def __init__(self, *most: int) -> None:
        self.next = 0
        self.lines: list[bytes] = []
        self.early: list[int] = []
        self.names: set[bytes] = set()
        self._most = list(most)

    def talk(self, connection: socket.socket) -> None:
        most = self._most.pop(0) if self._most else 1_000_000
        file = connection.makefile("rb")
        self.names.add(file.readline())
        asked = self.next
        connection.sendall(b"%d\n" % asked)
        while most > 0 and (line := file.readline()):
            number, _, row = line.rstrip(b"\n").partition(b" ")
            if int(number) < asked:
                self.early.append(int(number))
            if int(number) >= self.next:
                self.lines.append(row)
                self.next = int(number) + 1
            connection.sendall(b"%d\n" % self.next)
            most -= 1


def send_all(made: Lines, records: Sequence[Taken], offset: int) -> None:
    """Do what `copy` does."""
    for _ in range(20):
        with contextlib.suppress(OSError):
            made.append(records, offset)
            return
    raise AssertionError("it never was sent")


def numbered(given: OutputSocket) -> Numbered:
    return Numbered(peer_of(given, HOST), "t.out")


def test_numbered_lines_reach_a_peer_once_that_breaks_off() -> None:
    stream = _Stream(2, 1, 0, 3)
    with peer(stream.talk) as server:
        given = OutputSocket(connect=server.address, ids=True)
        made = Lines(MADE, numbered(given))
        send_all(made, taken(*range(0, 20, 2)), 20)
        assert stream.lines == [b"r%d" % number for number in range(0, 20, 2)]
        assert made.offset == 20
        del made  # the peer takes one connection after the other
        later = Lines(MADE, numbered(given))
        assert later.offset == 19  # behind the last row; what follows it was no row
        send_all(later, taken(18, 21), 22)
        assert stream.lines[-2:] == [b"r18", b"r21"]
    assert stream.names == {b"t.out\n"}


def test_a_peer_gets_no_line_below_the_number_that_it_says() -> None:
    """It may have got on since the connection broke: it has committed what was under way."""
    stream = _Stream(0)
    with peer(stream.talk) as server:
        made = Lines(MADE, numbered(OutputSocket(connect=server.address, ids=True)))
        stream.next = 3
        send_all(made, taken(*range(5)), 5)
        assert stream.lines == [b"r3", b"r4"]
        assert stream.early == []
        assert made.offset == 5


def test_what_a_peer_was_not_sent_it_cannot_acknowledge() -> None:
    lines: list[bytes] = []

    def talk(connection: socket.socket) -> None:
        file = connection.makefile("rb")
        file.readline()
        connection.sendall(b"0\n")
        for line in file:
            lines.append(line)
            connection.sendall(b"1000\n")

    with peer(talk) as server:
        made = Lines(MADE, numbered(OutputSocket(connect=server.address, ids=True)))
        made.append(taken(0), 1)
        made.append(taken(1), 2)
        assert lines == [b"0 r0\n", b"1 r1\n"]
        assert made.offset == 2


def test_what_retention_has_removed_is_nothing_that_a_peer_has_lost() -> None:
    """It never had them: the topic begins above the number that the peer has said."""
    stream = _Stream(0, 1)
    with peer(stream.talk) as server:
        made = Lines(MADE, numbered(OutputSocket(connect=server.address, ids=True)))
        made.append([], 100)
        assert made.offset == 100
        send_all(made, taken(100, 101), 102)
        assert stream.lines == [b"r100", b"r101"]
        assert made.offset == 102


def test_a_peer_that_has_lost_rows_is_named_and_they_are_sent_at_the_next_start() -> None:
    stream = _Stream(3)
    with peer(stream.talk) as server:
        given = OutputSocket(connect=server.address, ids=True)
        made = Lines(MADE, numbered(given))
        made.append(taken(0, 1, 2), 3)
        stream.next = 1
        with pytest.raises(ConfigError, match="it has lost rows"):
            send_all(made, taken(3), 4)
        assert numbered(given).offset == 1


def test_a_peer_that_acknowledges_nothing_is_left_in_time() -> None:
    over = threading.Event()

    def talk(connection: socket.socket) -> None:
        connection.sendall(b"0\n")
        over.wait(30)

    with peer(talk) as server:
        given = OutputSocket(connect=server.address, ids=True, timeout_s=0.1)
        made = Lines(MADE, numbered(given))
        with pytest.raises(OSError):
            made.append(taken(0), 1)
        over.set()


def test_plain_lines_go_on_over_a_new_connection() -> None:
    lines: list[bytes] = []
    got = threading.Semaphore(0)

    def talk(connection: socket.socket) -> None:
        lines.append(connection.makefile("rb").readline())
        got.release()

    with peer(talk) as server:
        kept = _Kept(Acknowledged("t"))
        given = OutputSocket(connect=server.address)
        way = Plain(peer_of(given, HOST), cast(KeptOffset, kept))
        made = Lines(MADE, way)
        made.append(taken(0), 1)
        assert got.acquire(timeout=30)
        assert way._connection
        way._connection.recv(1)  # the peer's end
        made.append(taken(1), 2)
        assert got.acquire(timeout=30)
        assert lines == [b"r0\n", b"r1\n"]
        assert made.offset == 2


def test_a_peer_that_says_nothing_gets_line_after_line_over_one_connection() -> None:
    lines: list[bytes] = []

    def talk(connection: socket.socket) -> None:
        lines.extend(connection.makefile("rb"))

    with peer(talk) as server:
        given = OutputSocket(connect=server.address)
        made = Lines(MADE, Plain(peer_of(given, HOST), cast(KeptOffset, _Kept(Acknowledged("t")))))
        begun = time.monotonic()
        for number in range(5):
            made.append(taken(number), number + 1)
        assert time.monotonic() - begun < given.timeout_s
        del made
        wait_until(lambda: len(lines) == 5, 30, "all lines")


class _Slow:
    """A peer that reads little at a time, but steadily, and says what it has."""

    def __init__(self, most: int, *, numbers: bool) -> None:
        self.read = 0
        self._most, self._numbers = most, numbers

    def talk(self, connection: socket.socket) -> None:
        if self._numbers:
            connection.recv(100)
            connection.sendall(b"0\n")
        lines = 0
        while self.read < self._most and (data := connection.recv(65536)):
            self.read += len(data)
            lines += data.count(b"\n")
            if self._numbers:
                connection.sendall(b"%d\n" % lines)
            time.sleep(0.1)


def way_to(given: OutputSocket) -> Plain | Numbered:
    if given.ids:
        return numbered(given)
    return Plain(peer_of(given, HOST), cast(KeptOffset, _Kept(Acknowledged("t"))))


LARGE = [Taken(offset, b"x" * 4095) for offset in range(1024)]


@pytest.mark.parametrize("ids", [False, True])
def test_a_peer_that_is_slow_but_takes_is_not_left(ids: bool) -> None:
    slow = _Slow(1 << 30, numbers=ids)
    with peer(slow.talk, receives=65536) as server:
        given = OutputSocket(connect=server.address, ids=ids, timeout_s=1.2)
        made = Lines(MADE, way_to(given))
        begun = time.monotonic()
        made.append(LARGE, len(LARGE))
        assert time.monotonic() - begun > given.timeout_s
        assert made.offset == len(LARGE)


def test_what_a_peer_acknowledges_while_it_is_sent_to_counts() -> None:
    slow = _Slow(1 << 21, numbers=True)
    with peer(slow.talk, receives=65536) as server:
        made = Lines(MADE, numbered(OutputSocket(connect=server.address, ids=True, timeout_s=0.6)))
        with pytest.raises(OSError):
            made.append(LARGE, len(LARGE))
        assert 0 < made.offset < len(LARGE)


def test_a_line_break_in_a_row_is_set_aside() -> None:
    stream = _Stream()
    with peer(stream.talk) as server:
        given = OutputSocket(connect=server.address, ids=True)
        made = Lines(MADE, numbered(given))
        made.append([Taken(0, b'I,N,1,"a\nb"')], 1)
        assert made.progress(1).rejected == 1
        assert b"line break" in stream.lines[0]


@contextlib.contextmanager
def called(**options: object) -> Iterator[tuple[AnyPeer, int]]:
    """Wait for a peer on a free port."""
    (port,) = free_ports(1)
    made = peer_of(OutputSocket.model_validate({"port": port, **options}), HOST)
    with pytest.raises(Waiting, match="no peer is connected"):
        made.reach()  # it listens from here on
    yield made, port


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(peers, "_PEER_S", 0.05)
    monkeypatch.setattr(peers, "_GREETING_S", 0.5)


def calls(port: int, stream: _Stream) -> threading.Thread:
    """Connect as a peer with numbers, once."""

    def talk() -> None:
        with contextlib.suppress(OSError), socket.create_connection((HOST, port), 30) as connection:
            stream.talk(connection)

    thread = threading.Thread(target=talk, daemon=True)
    thread.start()
    return thread


@pytest.mark.usefixtures("impatient")
def test_numbered_lines_reach_a_peer_once_that_connects_again_and_again() -> None:
    stream = _Stream(0, 2, 3)
    with called(ids=True) as (made, port):
        threads = [calls(port, stream)]
        way = Numbered(made, "t.out")
        lines = Lines(MADE, way)
        for _ in range(20):
            with contextlib.suppress(OSError):
                lines.append(taken(*range(0, 20, 2)), 20)
                break
            threads[-1].join(30)
            threads.append(calls(port, stream))
        assert stream.lines == [b"r%d" % number for number in range(0, 20, 2)]
        assert (lines.offset, len(threads)) == (20, 4)
        assert stream.names == {b"t.out\n"}


@pytest.mark.usefixtures("impatient")
def test_the_newest_connection_counts_and_who_says_nothing_changes_nothing() -> None:
    with called(ids=True) as (made, port):
        first, second = _Stream(), _Stream()
        calls(port, first)
        lines = Lines(MADE, Numbered(made, "t.out"))
        lines.append(taken(0), 1)
        silent = socket.create_connection((HOST, port), 30)
        lines.settle()
        lines.append(taken(1), 2)
        silent.close()
        second.next = 2
        calls(port, second)
        while made.is_back() or not second.names:
            lines.settle()
        lines.append(taken(2), 3)
        assert (first.lines, second.lines) == ([b"r0", b"r1"], [b"r2"])


@pytest.mark.usefixtures("impatient")
def test_plain_lines_wait_for_a_peer_that_connects() -> None:
    with called() as (made, port):
        lines = Lines(MADE, Plain(made, cast(KeptOffset, _Kept(Acknowledged("t")))))
        with pytest.raises(Waiting, match="no peer is connected"):
            lines.append(taken(0), 1)
        with socket.create_connection((HOST, port), 30) as connection:
            lines.append(taken(0), 1)
            assert connection.recv(100) == b"r0\n"
            lines.append(taken(1), 2)  # the peer never says anything: that is no reason to wait
            assert connection.recv(100) == b"r1\n"
        with socket.create_connection((HOST, port), 30) as connection:
            lines.append(taken(2), 3)
            assert connection.recv(100) == b"r2\n"
        assert lines.offset == 3


def test_a_socket_has_one_place() -> None:
    for options in ({}, {"port": 5000, "connect": "h:1"}):
        with pytest.raises(ValidationError, match="exactly one of: port, connect"):
            OutputSocket.model_validate(options)

"""The HTTP client: answers are bounded in time and in size, and what is no answer is told."""

import contextlib
import socket
import threading
from collections.abc import Callable, Iterator

import pytest

from espha.protocol.http import NoAnswerError, ask, ask_status, ask_switchover
from espha.protocol.states import SwitchoverReason
from espha.protocol.status import ReplicaStatus
from espha.protocol.switchover import SwitchoverAnswer

HEAD = b"HTTP/1.1 200 OK\r\nConnection: close\r\n"
Serve = Callable[[socket.socket], None]
Start = Callable[[Serve], str]


@pytest.fixture
def start() -> Iterator[Start]:
    """Start a server that treats one connection as it is told."""
    server = socket.create_server(("127.0.0.1", 0))

    def started(serve: Serve) -> str:
        threading.Thread(target=run, args=(serve,), daemon=True).start()
        return f"127.0.0.1:{server.getsockname()[1]}"

    def run(serve: Serve) -> None:
        connection, _ = server.accept()
        with connection, contextlib.suppress(ConnectionError):  # an impatient client
            connection.recv(4096)
            serve(connection)

    yield started
    server.close()


def says(code: int, body: str) -> Serve:
    head = f"HTTP/1.1 {code} X\r\nContent-Length: {len(body)}\r\n\r\n"
    return lambda connection: connection.sendall(head.encode() + body.encode())


def test_an_answer_is_returned_with_its_code(start: Start) -> None:
    assert ask(start(says(404, "nothing")), "/x") == (404, b"nothing")


def test_a_redirect_is_an_answer_like_any_other(start: Start) -> None:
    location = b"HTTP/1.1 302 X\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n"
    assert ask(start(lambda one: one.sendall(location)), "/").code == 302


def test_nobody_there() -> None:
    with pytest.raises(NoAnswerError, match=r"127\.0\.0\.1:1 does not answer"):
        ask("127.0.0.1:1", "/status")


def test_what_is_not_http_is_no_answer(start: Start) -> None:
    with pytest.raises(NoAnswerError, match="does not answer"):
        ask(start(lambda one: one.sendall(b"hello\n" * 9)), "/status")


def test_a_silent_one_is_given_up(start: Start) -> None:
    hold = threading.Event()

    def stay(_: socket.socket) -> None:
        hold.wait(5)

    with pytest.raises(NoAnswerError, match="does not answer"):
        ask(start(stay), "/status", timeout_s=0.1)
    hold.set()


@pytest.mark.parametrize(
    ("first", "then"),
    [(HEAD + b"\r\n", b"."), (HEAD, b"a: b\r\n"), (HEAD.rstrip(), b" ")],
    ids=["body", "headers", "status line"],
)
def test_an_answer_that_trickles_is_given_up(start: Start, first: bytes, then: bytes) -> None:
    """Each byte comes in time, the whole would not."""

    def trickle(connection: socket.socket) -> None:
        connection.sendall(first)
        for _ in range(100):
            connection.sendall(then)
            threading.Event().wait(0.05)

    with pytest.raises(NoAnswerError, match="takes longer than"):
        ask(start(trickle), "/status", timeout_s=0.3)


def test_an_answer_without_end_is_given_up(start: Start) -> None:
    def flood(connection: socket.socket) -> None:
        connection.sendall(HEAD + b"\r\n" + b"." * 100_000)

    with pytest.raises(NoAnswerError, match="more than 1000 bytes"):
        ask(start(flood), "/status", largest=1000)


def test_an_answer_that_breaks_off_is_none(start: Start) -> None:
    with pytest.raises(NoAnswerError, match="does not answer"):
        ask(start(lambda one: one.sendall(HEAD + b"Content-Length: 9\r\n\r\nhalf")), "/status")


def test_a_status_is_read(start: Start) -> None:
    status = ReplicaStatus(name="a", restarts=3)
    assert ask_status(start(says(200, status.model_dump_json()))) == status


def test_another_text_is_no_status(start: Start) -> None:
    with pytest.raises(NoAnswerError, match="not a status"):
        ask_status(start(says(200, "[]")))


def test_a_refused_switchover_is_an_answer(start: Start) -> None:
    answer = SwitchoverAnswer(reason=SwitchoverReason.FORBIDDEN, message="no")
    assert ask_switchover(start(says(403, answer.model_dump_json())), "e", "t0ken") == answer


def test_another_text_is_no_answer_to_a_switchover(start: Start) -> None:
    with pytest.raises(NoAnswerError, match="HTTP 200: fine"):
        ask_switchover(start(says(200, "fine")), None, "")


def test_who_knows_no_switchover_refuses_it(start: Start) -> None:
    answer = ask_switchover(start(says(404, "try /status")), None, "")
    assert (answer.reason, answer.message) == (SwitchoverReason.NOT_OFFERED, "try /status")


def test_an_ipv6_address_stands_in_brackets() -> None:
    with pytest.raises(NoAnswerError, match=r"\[::1\]:1 does not answer"):
        ask("[::1]:1", "/status")

"""Contents of addresses that are asked at an interval, each new one once."""

import gzip
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from espha.adapters.config import ConfigError, Held
from espha.adapters.poll_input.position import Position, Seen
from espha.adapters.poll_input.run import Answer, Page, Polled, fetcher, pages
from espha.adapters.poll_input.spec import InputPoll
from espha.reader import read_project

WINDOW = read_project(
    b'<project name="p"><contqueries><contquery name="q"><windows>'
    b'<window-source name="w"><schema><fields>'
    b'<field name="id" type="int32" key="true"/><field name="x" type="string"/>'
    b"</fields></schema></window-source></windows></contquery></contqueries></project>"
).windows["q/w"]


class Server(ThreadingHTTPServer):
    """Answers with a body, and remembers what it was asked."""

    body: bytes = b""
    etag: str = ""
    encoding: str = ""
    status: int = 200
    endless: bool = False
    trickle: int = 0
    written: int = 0
    headers: list[dict[str, str]]

    @property
    def url(self) -> str:
        """Its address."""
        return f"http://127.0.0.1:{self.server_port}"


class Handler(BaseHTTPRequestHandler):
    """Answers as its server says."""

    server: Server

    def do_GET(self) -> None:
        """Answer."""
        self.server.headers.append(dict(self.headers))
        same = self.server.etag and self.headers.get("If-None-Match") == self.server.etag
        self.send_response(304 if same else self.server.status)
        if self.server.etag:
            self.send_header("ETag", self.server.etag)
        if self.server.encoding:
            self.send_header("Content-Encoding", self.server.encoding)
        self.end_headers()
        try:
            while self.server.endless:
                self.wfile.write(b"x" * 65_536)
            while self.server.written < self.server.trickle:
                self.wfile.write(b"\n")
                self.server.written += 1
                threading.Event().wait(0.05)
            if not same:
                self.wfile.write(self.server.body)
        except OSError:
            pass

    def log_message(self, format: str, *arguments: object) -> None:
        """Say nothing."""


@pytest.fixture
def server() -> Iterator[Server]:
    made = Server(("127.0.0.1", 0), Handler)
    made.headers = []
    made.daemon_threads = True
    thread = threading.Thread(target=made.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield made
    made.shutdown()
    thread.join()
    made.server_close()


def rows(found: list[tuple[bytes, Position]]) -> list[str]:
    return [value.decode().replace(" ", "") for value, _ in found]


class Clock:
    """Stands still until it is set."""

    now = 0.0

    def __call__(self) -> float:
        """Return the time."""
        return self.now


def polled(given: InputPoll, clock: Clock, position: Position | None = None) -> Polled:
    made = pages(WINDOW, given)
    return Polled(made, given, position or Position("a"), fetcher(given, "Bearer T"), clock)


def test_a_content_is_published_once_and_a_new_one_when_it_is_there(server: Server) -> None:
    server.body = b"I,N,1,a\nI,N,2,b\n"
    clock = Clock()
    source = polled(InputPoll(address=f"{server.url}/rows?q=1"), clock)
    first = list(source.poll())
    assert rows(first) == ["I,N,1,a", "I,N,2,b"]
    assert rows(list(source.poll())) == []
    assert len(server.headers) == 1
    clock.now = 60
    assert rows(list(source.poll())) == []
    assert len(server.headers) == 2
    server.body = b"I,N,3,c\n"
    clock.now = 120
    assert rows(list(source.poll())) == ["I,N,3,c"]
    assert server.headers[0]["Authorization"] == "Bearer T"
    assert source.position.progress(0).position == "2 contents, 3 rows"


def test_whoever_takes_over_asks_for_what_is_newer(server: Server) -> None:
    """The last row of a transaction knows what was seen, the others do not have to."""
    server.body, server.etag = b"I,N,1,a\nI,N,2,b\n", '"v1"'
    source = polled(InputPoll(address=server.url), Clock())
    (_, bare), (_, last) = source.poll()
    assert "seen" not in json.loads(bare.to_header())
    kept = Position.of("a", json.loads(last.to_header()))
    assert kept == last
    after = polled(InputPoll(address=server.url), Clock(), kept)
    assert rows(list(after.poll())) == []
    assert server.headers[1]["If-None-Match"] == '"v1"'
    server.etag = ""  # a server that forgets names: the bytes are the same
    assert rows(list(polled(InputPoll(address=server.url), Clock(), kept).poll())) == []


def test_a_bad_row_says_where_it_is_from(server: Server) -> None:
    server.body = b'{"id": 1, "x": "a"}\n[5]\n'
    given = InputPoll.model_validate({"address": server.url, "format": {"type": "json"}})
    good, bad = rows(list(polled(given, Clock()).poll()))
    assert good == "I,N,1,a"
    assert bad.startswith(f'notarow,"{server.url},row2:notaJSONobject"')


@pytest.mark.parametrize(
    ("trouble", "sentence"),
    [
        ({"status": 500}, "answered with HTTP 500"),
        ({"body": b"x" * 2000}, r"more than 1024 bytes"),
        ({"endless": True}, r"more than 1024 bytes"),
    ],
)
def test_a_server_in_trouble_is_asked_again_with_pauses(
    server: Server, trouble: dict[str, object], sentence: str
) -> None:
    for name, value in trouble.items():
        setattr(server, name, value)
    clock = Clock()
    source = polled(InputPoll(address=server.url, max_bytes=1024), clock)
    with pytest.raises(Held, match=sentence):
        source.poll()
    with pytest.raises(Held, match=sentence):  # it is still in trouble, and not asked at once
        source.poll()
    assert len(server.headers) == 1
    server.status, server.endless, server.body = 200, False, b"I,N,1,a"
    clock.now = 1
    assert rows(list(source.poll())) == ["I,N,1,a"]


def test_a_compressed_content_is_expanded_as_far_as_it_may(server: Server) -> None:
    texts = [f"I,N,{number},{'x' * (number % 97)}" for number in range(5000)]
    server.body, server.encoding = gzip.compress("\n".join(texts).encode()), "gzip"
    assert rows(list(polled(InputPoll(address=server.url), Clock()).poll())) == texts
    small = InputPoll(address=server.url, max_bytes=100_000)
    with pytest.raises(Held, match="more than 100000 bytes"):
        polled(small, Clock()).poll()


def test_an_address_that_answers_byte_by_byte_is_late(server: Server) -> None:
    """It is left after `timeoutS`, however long its answer would take."""
    server.trickle = 200
    source = polled(InputPoll(address=server.url, timeout_s=0.2), Clock())
    with pytest.raises(Held, match=r"the answer was not complete after 0.2 s \(timeoutS\)"):
        source.poll()
    assert 0 < server.written < server.trickle


def test_an_address_that_is_away_does_not_hold_up_others() -> None:
    def fetch(address: str, _: Seen) -> Answer:
        if address == "http://a":
            raise OSError("no answer")
        return Answer(b"content", Seen.of("", "", b"content"))

    asked = [Page(one, lambda content, _: [content]) for one in ("http://a", "http://b")]
    given = InputPoll(address="http://a")
    source = Polled(asked, given, Position("a"), fetch, Clock())
    with pytest.raises(Held, match="http://a: no answer"):
        source.poll()
    assert [value for value, _ in source.poll()] == [b"content"]


NEWS = """<url-connector><url-publishers><url-publisher name="p"><requests><request>
<url>%s/@PAGE@</url></request></requests><opcode>upsert</opcode><generate>0</generate>
<event-loops><event-loop-xml name="loop" data="element">
<use-xml>#_content</use-xml><xpath>//item</xpath><function-context><functions>
<function name="id">xpath(#_context,'./@n')</function>
<function name="x">xpath(#_context,'./text()')</function>
</functions></function-context></event-loop-xml></event-loops></url-publisher></url-publishers>
</url-connector>"""


def test_the_configuration_of_a_connector_says_which_events_a_content_is(
    server: Server, tmp_path: Path
) -> None:
    server.body = b"<rss><item n='1'>a</item><item n='2'>b</item></rss>"
    file = tmp_path / "config.xml"
    file.write_text(NEWS % server.url)
    given = InputPoll(configuration=file, properties="PAGE=news")
    assert rows(list(polled(given, Clock()).poll())) == ["P,N,1,a", "P,N,2,b"]
    server.body = b"<rss><item>c</item></rss>"
    (bad,) = rows(list(polled(given, Clock()).poll()))
    assert "keyfieldidisnull" in bad


OBJECTS = """<url-connector><url-publishers><url-publisher name="p"><requests><request>
<url>%s</url></request></requests><generate>0</generate>
<event-loops><event-loop-json name="loop"><use-json>#_content</use-json>
<function-context><functions>
<function name="id">json(#_context,'id')</function><function name="x">json(#_context,'x')</function>
</functions></function-context></event-loop-json></event-loops></url-publisher></url-publishers>
</url-connector>"""


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (r"a\ud83d", "a\ufffd"),
        (r"\uDE00\ud83d\u0041", "\ufffd\ufffdA"),
        (r"\ud83d\ud83d\ude00", "\ufffd\U0001f600"),
        (r"\\ud83d\\\uD83D\"", '"\\ud83d\\\ufffd"""'),
    ],
    ids=["first half", "turned round", "before a pair", "behind backslashes"],
)
def test_half_of_a_surrogate_pair_is_no_character_and_costs_no_other_value(
    server: Server, tmp_path: Path, text: str, value: str
) -> None:
    server.body = rb'[{"id": 1, "x": "%s"}, {"id": 2, "x": "\ud83d\ude00"}]' % text.encode()
    file = tmp_path / "config.xml"
    file.write_text(OBJECTS % server.url)
    found = rows(list(polled(InputPoll(configuration=file), Clock()).poll()))
    assert found == [f"I,N,1,{value}", "I,N,2,\U0001f600"]


def test_what_looks_like_such_a_half_stays_what_it_is_outside_of_json(
    server: Server, tmp_path: Path
) -> None:
    server.body = rb"<rss><item n='1'>C:\ud83d</item></rss>"
    file = tmp_path / "config.xml"
    file.write_text(NEWS % server.url)
    source = polled(InputPoll(configuration=file, properties="PAGE=news"), Clock())
    assert rows(list(source.poll())) == [r"P,N,1,C:\ud83d"]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (None, "No such file"),
        ("<a", "configuration"),
        ("<a/>", "give 1 to 20 requests with a url: 0"),
        (NEWS % "file://x", "is none of http or https"),
    ],
)
def test_a_configuration_that_cannot_be_used_is_named(
    tmp_path: Path, text: str | None, sentence: str
) -> None:
    file = tmp_path / "config.xml"
    if text is not None:
        file.write_text(text)
    with pytest.raises(ConfigError, match=sentence):
        pages(WINDOW, InputPoll(configuration=file))

"""Connectors to what stands outside: servers of this test, databases in files."""

import sqlite3
import threading
from collections.abc import Iterator, Sequence
from html import escape
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any, ClassVar

import pytest
from websockets.sync.server import ServerConnection, serve

from espha.offline.command import DONE
from support.models import source, xml
from support.offline import Place


def connector(class_: str, **properties: str) -> str:
    """Return a connector, called c."""
    listed = "".join(
        f'<property name="{name}">{escape(text)}</property>' for name, text in properties.items()
    )
    inner = f'<connector class="{class_}" name="c"><properties>{listed}</properties></connector>'
    return f"<connectors>{inner}</connectors>"


def run(place: Place, body: str, schema: str = "id*:int32,x:string", **options: Any) -> list[str]:
    """Run a source with a connector; return what leaves it."""
    windows = source(schema, body=body)
    place.write("model.xml", xml(windows, index="pi_HASH"))
    trace = place.folder / "trace.csv"
    assert place.run(traces=[f"in={trace}"], **options) == DONE
    return place.lines("trace.csv")


class Pages(BaseHTTPRequestHandler):
    """Answers with the page of a path."""

    pages: ClassVar[dict[str, bytes]] = {}

    def do_GET(self) -> None:
        """Answer."""
        body = self.pages.get(self.path)
        self.send_response(404 if body is None else 200)
        self.end_headers()
        self.wfile.write(body or b"")

    def log_message(self, format: str, *arguments: object) -> None:
        """Say nothing."""


@pytest.fixture
def web() -> Iterator[str]:
    """Serve pages; return the address."""
    server = HTTPServer(("127.0.0.1", 0), Pages)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


NEWS = """<url-connector><url-publishers><url-publisher name="p"><requests><request>
<url>%s/@PAGE@</url></request></requests><opcode>upsert</opcode><generate>0</generate>
<function-context><functions><function name="x">string('all')</function></functions>
</function-context><event-loops><event-loop-xml name="loop" data="element">
<use-xml>#_content</use-xml><xpath>//item</xpath><function-context><functions>
<function name="id">xpath(#_context,'./@n')</function>
<function name="x">string($x, ' ', xpath(#_context,'./text()'))</function>
</functions></function-context></event-loop-xml></event-loops></url-publisher></url-publishers>
</url-connector>"""


def test_each_address_is_asked_once_and_its_answer_mapped(tmp_path: Path, web: str) -> None:
    Pages.pages = {"/news": b"<rss><item n='1'>a</item><item n='2'>b</item></rss>"}
    place = Place(tmp_path)
    place.write("config.xml", NEWS % web)
    body = connector("url", configUrl="file://config.xml", properties="PAGE=news;OTHER=1")
    assert run(place, body) == ["I,N, 1,all a", "I,N, 2,all b"]
    Pages.pages = {"/news": b"<rss><item>c</item></rss>"}
    assert run(place, body) == []
    assert f"{web}/news: key field id is null" in place.said


@pytest.mark.parametrize(
    ("properties", "reason"),
    [
        ({}, "property 'configUrl' is missing"),
        ({"configUrl": "none.xml"}, "none.xml: No such file or directory"),
        ({"configUrl": "config.xml", "properties": "PAGE=x"}, "/x answered 404"),
    ],
)
def test_what_cannot_be_reached_is_said_in_one_line(
    tmp_path: Path, web: str, properties: dict[str, str], reason: str
) -> None:
    Pages.pages = {}
    place = Place(tmp_path)
    place.write("config.xml", NEWS % web)
    assert run(place, connector("url", **properties)) == []
    (line,) = [line for line in place.said.splitlines() if "is not run" in line]
    assert line.startswith("connector q/in/c is not run: ")
    assert line.endswith(reason) or reason in line


@pytest.fixture
def socket() -> Iterator[tuple[str, list[str]]]:
    """Serve a WebSocket that sends messages and closes; return its address and the messages."""
    messages: list[str] = []

    def answer(connection: ServerConnection) -> None:
        for message in messages:
            connection.send(message)

    with serve(answer, "127.0.0.1", 0) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"ws://127.0.0.1:{server.socket.getsockname()[1]}/", messages
        server.shutdown()
        thread.join()


def test_messages_of_a_websocket(tmp_path: Path, socket: tuple[str, list[str]]) -> None:
    address, messages = socket
    messages += [
        '{"id": 1, "x": "a"}',
        '{"events": [{"event": {"opcode": "upsert", "id": 1, "x": "b"}}]}',
        "[1]",
    ]
    place = Place(tmp_path)
    assert run(place, connector("websocket", url=address, contentType="json")) == [
        "I,N, 1,a",
        "U,N, 1,b",
        "D,N, 1,a",
    ]
    assert "q/in/c: not a JSON object" in place.said
    place.said = ""
    assert len(run(place, connector("websocket", url=address, maxevents="1"))) == 1


def database(path: Path, *statements: str) -> Sequence[tuple[object, ...]]:
    """Run statements; return the rows of the last one."""
    with sqlite3.connect(path) as connection:
        rows: list[tuple[object, ...]] = []
        for statement in statements:
            rows = connection.execute(statement).fetchall()
    connection.close()
    return rows


def test_rows_of_a_database_become_events(tmp_path: Path) -> None:
    """Columns are known by their names, in any order and case."""
    place = Place(tmp_path)
    database(
        tmp_path / "rows.db",
        "create table t (X text, ID integer, T text, more text)",
        "insert into t values ('a', 1, '1970-01-01 00:00:01', 'z'), (null, 2, null, 'z')",
    )
    body = connector(
        "db", connectstring="sqlite:///rows.db", selectstatement="select * from t order by id"
    )
    assert run(place, body, "id*:int32,x:string,t:date") == ["I,N, 1,a,1", "I,N, 2,,"]


def test_a_table_follows_a_window(tmp_path: Path) -> None:
    place = Place(tmp_path)
    database(tmp_path / "rows.db", "create table none (x text)")
    rows = place.write("in.csv", "I,N,1,a", "I,N,2,b", "U,N,1,c", "D,N,2,", "I,N,3,d")
    body = connector("db", type="sub", connectstring="sqlite:///rows.db", desttablename="t")
    run(place, body, inputs=[f"in={rows}"])
    assert database(tmp_path / "rows.db", "select * from t order by id") == [(1, "c"), (3, "d")]
    assert "table t (5)" in place.said


@pytest.mark.parametrize(
    ("class_", "properties", "reason"),
    [
        ("db", {"connectstring": "sqlite:///no/where.db"}, "could not be reached"),
        ("db", {"connectstring": "DSN=x;uid=u;pwd=secret"}, "DSN=x needs the package pyodbc"),
        ("db", {"connectstring": "sqlite://"}, "property 'selectstatement' is missing"),
        ("db", {"connectstring": "sqlite://", "selectstatement": "select"}, "incomplete input"),
        ("websocket", {"url": "ws://127.0.0.1:1/"}, "could not be reached"),
        ("kafka", {}, "properties 'kafkahostport' and 'kafkatopic' say where"),
        ("project", {"srcproject": "other"}, "project 'other' is another one"),
        ("mqtt", {}, "class mqtt is not run here; use --input or --trace"),
    ],
)
def test_a_connector_that_cannot_be_run_is_left_out(
    tmp_path: Path, class_: str, properties: dict[str, str], reason: str
) -> None:
    place = Place(tmp_path)
    assert run(place, connector(class_, **properties)) == []
    (line,) = [line for line in place.said.splitlines() if "is not run:" in line]
    assert reason in line
    assert "secret" not in place.said


def test_a_broker_that_is_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("espha.offline.outside.kafka.SECONDS", 0.2)
    place = Place(tmp_path)
    body = connector("kafka", kafkahostport="127.0.0.1:1", kafkatopic="t")
    assert run(place, body) == []
    assert "q/in/c is not run: 127.0.0.1:1 could not be reached" in place.said


def test_what_leaves_a_window_enters_another_one(tmp_path: Path) -> None:
    place = Place(tmp_path)
    body = connector("project", srcproject="p", srccontinuousquery="q", srcwindow="first")
    first = source("x:string,id*:int32,y:int32", name="first")
    windows = first + source("id*:int32,x:string", body=body)
    place.write("model.xml", xml(windows, index="pi_HASH"))
    rows = place.write("in.csv", "I,N,a,1,5", "U,N,b,1,6")
    trace = tmp_path / "trace.csv"
    assert place.run(inputs=[f"first={rows}"], traces=[f"in={trace}"]) == DONE
    assert place.lines("trace.csv") == ["I,N, 1,a", "U,N, 1,b", "D,N, 1,a"]

"""Notification windows: which messages are made, and how they are sent."""

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from espha.kernel import Kernel
from espha.model import ModelError
from espha.model.events import Event
from espha.offline.senders import Sender, SendError, post
from espha.reader import read_project
from support.models import SUB, source, xml

CONTEXT = """<function-context><functions>
  <function name="total">product($price,$n)</function>
  <function name="luck">random(0,1000000)</function>
</functions></function-context>"""


def window(channels: str, *, before: str = CONTEXT) -> str:
    return (
        f'<window-notification name="out">{before}'
        f"<delivery-channels>{channels}</delivery-channels>{SUB}</window-notification>"
    )


LOG = (
    '<log name="large" throttle-interval="{throttle}"><deliver>gt($total,100)</deliver>'
    "<log-info><subject>$$ of ${{id}}</subject></log-info>"
    "<log-contents><text-content>total $total, $gone, ${{price}}.</text-content>"
    "</log-contents></log>"
)


def kernel(channels: str, **more: str) -> Kernel:
    schema = "id*:int64,price:double,n:int64"
    windows = source(schema, 'index="pi_HASH"') + window(channels, **more)
    return Kernel(read_project(xml(windows, '<edge source="in" target="out"/>')))


def send(run: Kernel, opcode: str, *values: object, clock: int = 1_000) -> list[Event]:
    given = Event(opcode, "N", values)  # type: ignore[arg-type]
    return [event for path, event in run.publish("q/in", given, clock) if path == "q/out"]


def test_a_message_is_made_of_each_row_that_is_wanted() -> None:
    run = kernel(LOG.format(throttle="0"))
    assert send(run, "I", 1, 2.5, 10) == []
    (made,) = send(run, "I", 2, 50.5, 10)
    expected = (0, 1_000_000, "log", "large", "", "$ of 2", "total 505, , 50.5.", 0)
    assert made == Event("I", "N", expected)
    (made,) = send(run, "U", 1, 30.0, 10)
    assert (made.opcode, made.values[0], made.values[5]) == ("I", 1, "$ of 1")
    assert send(run, "D", 1, None, None) == []
    assert send(run, "I", 3, None, 1) == []


def test_a_throttled_channel_waits_by_the_clock_of_the_events() -> None:
    run = kernel(LOG.format(throttle="2 minutes"))
    clocks = [0, 119_999, 120_000, 120_001, 240_000]
    made = [len(send(run, "I", at, 500.0, 1, clock=clock)) for at, clock in enumerate(clocks)]
    assert made == [1, 0, 1, 0, 1]


def test_channels_are_throttled_each_on_its_own_and_come_in_order() -> None:
    run = kernel(LOG.format(throttle="1 hour") + "<log name='all'/>")
    assert [event.values[3] for event in send(run, "I", 1, 500.0, 1)] == ["large", "all"]
    assert [event.values[3] for event in send(run, "I", 2, 500.0, 1)] == ["all"]


def test_a_restored_window_goes_on() -> None:
    channels = LOG.format(throttle="10 seconds") + (
        "<log><log-contents><text-content>$luck</text-content></log-contents></log>"
    )
    straight, cutting = kernel(channels), kernel(channels)
    for at in range(6):
        state = cutting.state()
        cutting = kernel(channels)
        cutting.restore(state)
        expected = send(straight, "I", at, 500.0, 1, clock=at * 4_000)
        assert send(cutting, "I", at, 500.0, 1, clock=at * 4_000) == expected
    assert len({event.values[6] for event in expected}) == len(expected)


MAIL = """<email throttle-interval="1 hour" test="true">
  <email-info><sender>a@example.org</sender><recipients>b@example.org</recipients>
    <subject>row $id</subject><from>A</from><to>B</to></email-info>
  <email-contents><text-content name="t">one</text-content>
    <html-content><![CDATA[<b>$n</b>]]></html-content><image-content>x</image-content>
  </email-contents></email>
<sms><sms-info><sender>a</sender><gateway>g</gateway><phone>1234</phone></sms-info>
  <sms-contents><text-content>hello</text-content></sms-contents></sms>
<mms/>"""


def test_mail_and_short_messages_are_made_but_not_sent() -> None:
    run = kernel(MAIL, before="<smtp host='mail'/>")
    mail, sms, mms = send(run, "I", 7, 1.0, 3)
    assert mail.values[2:] == (
        "email", "email", "b@example.org, B", "row 7", "one\n<b>3</b>", 1,
    )  # fmt: skip
    assert sms.values[2:] == ("sms", "sms", "1234", "", "hello", 0)
    assert mms.values[2:] == ("mms", "mms", "", "", "", 0)
    project = read_project(
        xml(
            source("id*:int64,price:double,n:int64") + window(MAIL, before="<smtp/>"),
            '<edge source="in" target="out"/>',
        )
    )
    shown = "\n".join(str(warning) for warning in project.warnings)
    for reason in ("no email is sent", "no sms is sent", "no mail is sent", "images are left out"):
        assert reason in shown
    Sender(project).send("q/out", mail)


@pytest.mark.parametrize(
    ("channels", "reason"),
    [
        ("", "needs a channel: email, sms"),
        ("<pager/>", "not supported in <delivery-channels>"),
        ("<log throttle-interval='soon'/>", "is not a length of time, such as 30 seconds"),
        ("<log><deliver>gt(</deliver></log>", "<deliver>"),
        ("<log><email-info/></log>", "not supported in <log>"),
        ("<http/>", "the url '' is none"),
        (
            "<http><http-info><url>http://a</url></http-info></http>" * 2,
            "two <http> have one name",
        ),
        ("<http><http-info><url>file:///etc/x</url></http-info></http>", "is none that starts"),
        ("<http><http-info><url>http://a/\nb</url></http-info></http>", "is none that starts"),
        (
            "<http><http-info><url>http://a</url><content-type>a&#10;b</content-type>"
            "</http-info></http>",
            "content-type",
        ),
    ],
)
def test_bad_channels_are_refused(channels: str, reason: str) -> None:
    with pytest.raises(ModelError) as caught:
        kernel(channels)
    assert reason in str(caught.value)
    assert all(problem.line > 1 for problem in caught.value.problems)


def test_a_name_that_means_nothing_is_a_warning() -> None:
    windows = source("id*:int64,price:double,n:int64") + window(LOG.format(throttle="0"))
    project = read_project(xml(windows, '<edge source="in" target="out"/>'))
    assert any("$gone is neither a field" in str(warning) for warning in project.warnings)


def test_a_schema_needs_no_key_and_a_name_can_be_one_of_its_own_function() -> None:
    before = (
        "<schema><fields><field name='mail' type='string'/></fields></schema>"
        "<function-context><functions><function name='mail'>rgxReplace($mail,'a','b')</function>"
        "</functions></function-context>"
    )
    channel = (
        "<log unresolved-text='?'><deliver>isNull($mail)</deliver><log-contents>"
        "<text-content>to $mail, ${nobody}: $price</text-content></log-contents></log>"
    )
    windows = source("id*:int64,price:double,n:int64") + window(channel, before=before)
    project = read_project(xml(windows, '<edge source="in" target="out"/>'))
    assert [warning.reason for warning in project.warnings] == [
        "$mail is neither a field of the input nor a function before it, so it is null",
        "$nobody is neither a field nor a function; it has no value",
    ]
    (made,) = send(Kernel(project), "I", 1, 2.5, 3)
    assert made.values[6] == "to ?, ?: 2.5"


class _Receiver(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"])).decode()
        taken = (self.path, body, self.headers["Content-Type"], self.headers["Idempotency-Key"])
        self.server.taken.append(taken)  # type: ignore[attr-defined]
        self.send_response({"/moved": 302, "/bad": 500}.get(self.path, 204))
        self.send_header("Location", "file:///etc/hostname")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture
def receiver() -> Iterator[HTTPServer]:
    server = HTTPServer(("127.0.0.1", 0), _Receiver)
    server.taken = []  # type: ignore[attr-defined]
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    yield server
    server.shutdown()
    server.server_close()
    thread.join()


def http(server: HTTPServer, path: str = "/hook", attributes: str = "") -> str:
    url = f"http://127.0.0.1:{server.server_port}{path}"
    return (
        f"<http {attributes}><http-info><url>{url}</url>"
        "<content-type>application/json</content-type></http-info>"
        '<http-contents><text-content>{"id": "$name"}</text-content></http-contents></http>'
    )


def hooked(server: HTTPServer, attributes: str = "") -> tuple[Sender, Event]:
    windows = source("id*:int64,name:string") + window(http(server, "/hook", attributes), before="")
    project = read_project(xml(windows, '<edge source="in" target="out"/>'))
    (made,) = send(Kernel(project), "I", 1, 'a "quoted"\nname')
    return Sender(project), made


def test_a_message_is_posted(receiver: HTTPServer) -> None:
    sender, made = hooked(receiver)
    assert sender.windows == {"q/out"}
    sender.send("q/out", made)
    ((path, body, content_type, key),) = receiver.taken  # type: ignore[attr-defined]
    assert (path, content_type, key) == ("/hook", "application/json", "q/out/0")
    assert json.loads(body) == {"id": 'a "quoted"\nname'}


def test_a_test_message_is_not_posted(receiver: HTTPServer) -> None:
    sender, made = hooked(receiver, 'test="true"')
    sender.send("q/out", made)
    assert receiver.taken == []  # type: ignore[attr-defined]


@pytest.mark.parametrize(("path", "answer"), [("/moved", "302"), ("/bad", "500")])
def test_only_success_counts_and_redirects_are_not_followed(
    receiver: HTTPServer, path: str, answer: str
) -> None:
    url = f"http://127.0.0.1:{receiver.server_port}{path}"
    with pytest.raises(SendError, match=answer):
        post(url, "x", "text/plain", key="k")
    assert len(receiver.taken) == 1  # type: ignore[attr-defined]


@pytest.mark.parametrize("url", ["file:///etc/hostname", "ftp://a/b", "http://", "http://[", ""])
def test_other_addresses_are_not_used(url: str) -> None:
    with pytest.raises(SendError, match="is not an address"):
        post(url, "x", "text/plain", key="k")


def test_a_receiver_that_is_not_there_is_an_error(receiver: HTTPServer) -> None:
    port = receiver.server_port
    receiver.shutdown()
    receiver.server_close()
    with pytest.raises(SendError, match="could not be reached"):
        post(f"http://127.0.0.1:{port}/", "x", "text/plain", key="k")

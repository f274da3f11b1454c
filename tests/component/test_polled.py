"""Contents that are asked for, by adapters as processes that are killed while they work."""

import random
import threading
from collections.abc import Iterator
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from espha.checker.damage import compare
from espha.kafka.reader import last_record
from support.adapters import Adapters, stopped_at_the_end
from support.replicas import LIMIT_S
from support.servers import Kafka, ZooKeeper, wait_until

pytestmark = pytest.mark.component

CONTENTS = 8
ROWS = 200
COLUMNS = {"opcode": False, "flags": False, "autogenField": False}


class Page(ThreadingHTTPServer):
    """A page that changes; without ETag, so that its bytes have to be compared."""

    body = b""
    daemon_threads = True


class Handler(BaseHTTPRequestHandler):
    """Answers with the page as it is now."""

    server: Page

    def do_GET(self) -> None:
        """Answer."""
        body = self.server.body
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *arguments: object) -> None:
        """Say nothing."""


@pytest.fixture
def page() -> Iterator[Page]:
    made = Page(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=made.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield made
    made.shutdown()
    thread.join()
    made.server_close()


@pytest.fixture
def site(kafka: Kafka, zookeeper: ZooKeeper, tmp_path: Path) -> Iterator[Adapters]:
    """Empty topics; adapters of the test end with it."""
    with stopped_at_the_end(Adapters(kafka, zookeeper, tmp_path)) as made:
        yield made


def at_row(site: Adapters, number: int) -> bool:
    last = last_record(site.kafka.bootstrap, site.input_topic)
    return last is not None and (last.value() or b"").startswith(b"I,N,,%d," % number)


def test_each_content_is_there_once_though_the_active_adapter_is_killed(
    site: Adapters, page: Page
) -> None:
    address = f"http://127.0.0.1:{page.server_port}/rows"
    poll = {"address": address, "intervalS": 1, "format": COLUMNS}
    site.start_pair("web", poll=poll)
    chance = random.Random(18)
    for content in range(CONTENTS):
        numbers = range(content * ROWS, (content + 1) * ROWS)
        page.body = "".join(f"{number},1,2,3\n" for number in numbers).encode()
        threading.Event().wait(chance.uniform(0, 1.2))  # a kill at any moment of an interval
        site.kill_active()
        wait_until(partial(at_row, site, numbers[-1]), LIMIT_S, "the last row of the content")
    expected = [f"I,N,,{number},1,2,3" for number in range(CONTENTS * ROWS)]
    damage = compare(expected, site.published())
    assert damage.none, damage.first

"""`espha dlq` on real topics: each letter is replayed once, whoever asks however often."""

import hashlib
import json
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import pytest
from confluent_kafka import Message
from typer.testing import CliRunner

from espha.adapters.formats.refused import not_a_row
from espha.cli import app
from espha.connectors.topics import TopicPlan, topic_plan
from espha.dead_letters.letters import letters
from espha.dead_letters.replay import Choice, Replay
from espha.kafka.reader import Offsets, read_range
from espha.kafka.writer import Fenced, FencedWriter, Record
from espha.reader import read_project
from support.deployment import SAMPLE_MODEL
from support.servers import Kafka, wait_until

pytestmark = pytest.mark.component

POSITION = b'{"adapter":"memory","file":"/data/in.csv"}'
LONG = b"I,N,8,many" + b"x" * 100


@dataclass
class Site:
    """The topics of the sample model with some dead letters."""

    kafka: Kafka
    plan: TopicPlan

    @property
    def source(self) -> str:
        """Its input topic."""
        return next(iter(self.plan.inputs.values()))

    def dlq(self, *words: str, code: int = 0) -> list[dict[str, object]]:
        """Run `espha dlq … --json`, and return the lines that it prints."""
        where = ["--bootstrap", self.kafka.bootstrap, "--model", str(SAMPLE_MODEL)]
        prefix = ["--prefix", self.plan.prefix, "--json"]
        result = CliRunner().invoke(app, ["dlq", *words, *where, *prefix])
        assert result.exit_code == code, result.output
        return [json.loads(line) for line in result.stdout.splitlines()]

    def input(self) -> list[Message]:
        """Return the records of the input topic."""
        offsets = Offsets(self.kafka.bootstrap)
        return list(read_range(self.kafka.bootstrap, self.source, 0, offsets.settled(self.source)))

    def replayed(self) -> list[tuple[bytes, bytes]]:
        """Return values and ids of what was replayed."""
        headers = [(one.value(), dict(one.headers() or ())) for one in self.input()]
        return [
            (value, found["espha-replay"]) for value, found in headers if "espha-replay" in found
        ]


@pytest.fixture
def site(kafka: Kafka) -> Iterator[Site]:
    """Four refused rows: one is plain, one was cut, one is no row, one has ended engines."""
    plan = topic_plan(read_project(SAMPLE_MODEL.read_bytes()), f"d{uuid.uuid4().hex[:8]}")
    kafka.make_topics(*plan.all())
    made = Site(kafka, plan)
    values = [b"I,N,7,many", LONG, not_a_row("here: no CSV", b'"x'), b"I,N,9,1,2,3"]
    whole = hashlib.sha256(LONG).hexdigest().encode()
    more: list[Mapping[str, bytes]] = [
        {},
        {"espha-size": b"%d" % len(LONG), "espha-digest": whole},
        {},
        {"espha-reason": b"set aside after it had ended 2 engines: it raised"},
    ]  # fmt: skip
    writer = FencedWriter(kafka.bootstrap, plan.prefix)
    writer.fence()
    writer.commit(Record(made.source, value, (("espha-source", POSITION),)) for value in values)
    writer.commit(
        Record(plan.dead_letters, value[:20] if at == 1 else value, tuple({
            "espha-id": f"{made.source}:{at}:0".encode(), "espha-window": b"cq/memory",
            "espha-reason": b"field MemoryUsed: 'many' is no number", **headers,
        }.items()))
        for at, (value, headers) in enumerate(zip(values, more, strict=True))
    )  # fmt: skip
    wait_until(lambda: Offsets(kafka.bootstrap).end(plan.dead_letters) >= 4, 30, "the letters show")
    yield made


def test_letters_are_listed_and_shown(site: Site) -> None:
    found = site.dlq("list")
    assert [(one["offset"], one["kind"]) for one in found] == [
        (0, "row"), (1, "row"), (2, "unread"), (3, "set aside"),
    ]  # fmt: skip
    assert [one["offset"] for one in site.dlq("list", "--reason", "MANY", "--limit", "1")] == [1]
    assert site.dlq("list", "--source", "elsewhere") == []
    (shown,) = site.dlq("show", "0")
    assert (shown["payload"], shown["position"]) == ("I,N,7,many", POSITION.decode())
    assert site.dlq("show", "44", code=1) == []


def test_a_letter_is_replayed_once(site: Site) -> None:
    first = (b"I,N,7,many", f"{site.source}:0:0".encode())
    assert site.dlq("replay", "0", "--dry-run") == [{"offset": 0, "refused": None}]
    assert site.replayed() == []
    assert site.dlq("replay", "0") == [{"offset": 0, "refused": None}]
    assert site.replayed() == [first]
    (told,) = site.dlq("replay", "0", code=1)
    assert "it was replayed before; give --again" in str(told["refused"])
    assert site.replayed() == [first]
    site.dlq("replay", "0", "--again")
    assert site.replayed() == [first, first]


def test_what_cannot_be_replayed_says_why_and_the_others_are(site: Site) -> None:
    """The record of a letter that was cut is still on its topic, and it is the same."""
    told = {one["offset"]: str(one["refused"]) for one in site.dlq("replay", "--all", code=1)}
    assert told[0] == told[1] == "None"
    assert "correct it at its source" in told[2]
    assert "give --set-aside" in told[3]
    assert [value for value, _ in site.replayed()] == [b"I,N,7,many", LONG]
    site.dlq("replay", "3", "--set-aside")
    assert site.replayed()[-1][0] == b"I,N,9,1,2,3"
    (missing,) = site.dlq("replay", "44", code=1)
    assert "there is no such dead letter" in str(missing["refused"])


def test_of_two_that_replay_at_once_one_does(site: Site) -> None:
    """The second begins between what the first reads and what it writes."""
    bootstrap, plan = site.kafka.bootstrap, site.plan

    def found() -> Iterator[object]:
        yield from list(letters(bootstrap, plan))[:1]
        assert site.dlq("replay", "0") == [{"offset": 0, "refused": None}]

    with pytest.raises(Fenced):
        list(Replay(bootstrap, plan, Choice()).run(found()))  # type: ignore[arg-type]
    assert len(site.replayed()) == 1

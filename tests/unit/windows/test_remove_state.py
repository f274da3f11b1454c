"""Remove-state windows: what becomes an insert."""

import pytest

from espha.kernel import Kernel
from espha.model import ModelError
from espha.model.events import Event
from espha.reader import read_project
from espha.recovery.plain import dumps, loads
from support.models import source, xml

RETAINED = (
    '<window-copy name="kept" index="pi_HASH"><retention type="bycount_sliding">1</retention>'
    "</window-copy>"
)


def kernel(attributes: str = "", schema: str = "id*:int64,x:int64") -> Kernel:
    """In front of it stands a copy that keeps one row, so all kinds of events come."""
    windows = source(schema) + RETAINED + f'<window-remove-state name="out" {attributes}/>'
    edges = '<edge source="in" target="kept"/><edge source="kept" target="out"/>'
    return Kernel(read_project(xml(windows, edges)), published=["q/out"])


def publish(running: Kernel, opcode: str, *values: int) -> list[str]:
    """Publish; return what leaves as `I 0,1,5`."""
    outputs = running.publish("q/in", Event(opcode, "N", values), 0)
    assert all(event.flags == "N" for _, event in outputs)
    return [f"{event.opcode} {','.join(map(str, event.values))}" for _, event in outputs]


STEPS = (("I", 1, 5), ("U", 1, 6), ("I", 2, 7), ("D", 2, 7))


def test_every_event_of_a_block_is_numbered() -> None:
    running = kernel()
    assert [publish(running, *step) for step in STEPS] == [
        ["I 1,1,5"],
        ["I 2,1,6", "I 3,1,5"],
        ["I 4,2,7", "I 5,1,6"],
        ["I 6,2,7"],
    ]


@pytest.mark.parametrize(
    ("removed", "left"),
    [
        ("updates", [1, 1, 2, 1]),
        ("updateBlockDeletes", [1, 1, 2, 1]),
        ("deletes", [1, 1, 2, 0]),
        ("retentionDeletes", [1, 2, 1, 1]),
        ("retentionUpdates", [1, 2, 2, 1]),
        ("updates deletes retentionUpdates retentionDeletes", [1, 0, 1, 0]),
        ("updates,deletes", [1, 0, 2, 0]),
    ],
)
def test_kinds_of_events_are_removed(removed: str, left: list[int]) -> None:
    running = kernel(f'remove="{removed}"')
    assert [len(publish(running, *step)) for step in STEPS] == left


def test_removed_events_take_no_number() -> None:
    running = kernel('remove="updates updateBlockDeletes"')
    publish(running, "I", 1, 5)
    publish(running, "U", 1, 6)
    assert publish(running, "D", 1, 6) == ["I 2,1,6"]


def test_log_fields_tell_what_the_event_was() -> None:
    running = kernel('add-log-fields="true"')
    assert [publish(running, *step) for step in STEPS] == [
        ["I 1,I,N,1,5"],
        ["I 2,U,N,1,6", "I 3,D,N,1,5"],
        ["I 4,I,N,2,7", "I 5,D,R,1,6"],
        ["I 6,D,N,2,7"],
    ]


def test_the_number_is_the_only_key() -> None:
    windows = source("id*:int64,x:int64") + '<window-remove-state name="out"/>'
    project = read_project(xml(windows, '<edge source="in" target="out"/>'))
    assert [tuple(field) for field in project.windows["q/out"].fields] == [
        ("eventNumber", "int64", True),
        ("id", "int64", False),
        ("x", "int64", False),
    ]


@pytest.mark.parametrize(
    ("attributes", "schema", "reason"),
    [
        ('remove="inserts"', "id*:int64", "remove: 'inserts' is not one of: updates"),
        ("", "eventNumber*:int64", "a field 'eventNumber', which this window adds"),
        ('add-log-fields="true"', "id*:int64,originalFL:string", "a field 'originalFL'"),
        ('add-log-fields="perhaps"', "id*:int64", "use true or false"),
    ],
)
def test_refused(attributes: str, schema: str, reason: str) -> None:
    with pytest.raises(ModelError, match=reason):
        kernel(attributes, schema)


def test_numbers_go_on_after_a_restore() -> None:
    first, second = kernel(), kernel()
    publish(first, "I", 1, 5)
    second.restore(loads(dumps(first.state())))
    assert publish(second, "U", 1, 6) == publish(first, "U", 1, 6) == ["I 2,1,6", "I 3,1,5"]

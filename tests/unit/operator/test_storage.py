"""Volumes: how full, whose, and which brokers may begin with an empty one."""

from dataclasses import replace

import pytest

from espha_operator.status import storage
from espha_operator.status.checks import storage_low, volumes_fit
from espha_operator.status.storage import Claim, DiskFacts, Room
from unit.operator.samples import healthy, without


def brokers(*servers: int | None) -> list[Claim]:
    """Claims of brokers; None: its volume is a new one."""
    return [
        Claim(f"data-demo-kafka-{number}", "kafka", servers=one)
        for number, one in enumerate(servers)
    ]


@pytest.mark.parametrize(
    ("used", "status", "text"),
    [
        (79, "Enough", "No volume of 2 is used to 80%."),
        (84, "Low", "Volumes fill up: demo-kafka-1 more than 80 %."),
        (96, "Critical", "Nearly full: demo-kafka-1 more than 95 %."),
    ],
)
def test_a_volume_that_fills_up_is_named(used: int, status: str, text: str) -> None:
    rooms = (Room("demo-kafka-0", 100, 1), Room("demo-kafka-1", 100, used))
    verdict = storage_low(healthy(disks=DiskFacts(rooms=rooms)))
    assert verdict.reason == status
    assert verdict.ok is (used >= 80)
    assert verdict.message.startswith(text)


def test_the_volumes_of_engines_count() -> None:
    full = [
        one.model_copy(update={"volume_bytes": 1000, "volume_free_bytes": 50})
        for one in healthy().engines
    ]
    assert storage_low(healthy(engines=tuple(full))).message.count("more than 95 %") == 3


def test_a_growth_that_is_refused_is_said() -> None:
    why = "data-demo-kafka-0 cannot grow to 2Gi: forbidden"
    growing = ("data-demo-kafka-0",)
    assert volumes_fit(healthy(disks=DiskFacts(growing=growing))).ok
    refused = volumes_fit(healthy(disks=DiskFacts(growing=growing, refused=why)))
    assert (refused.ok, refused.message) == (False, why)


SINCE = "2026-02-01T00:00:00Z"


@pytest.mark.parametrize(
    ("made", "before", "names", "uids"),
    [
        # the pod was there when the volume has grown, and time enough has passed
        ("2026-01-01T00:00:00Z", "2026-02-01T00:00:01Z", {"data-demo-kafka-1"}, {"p-1"}),
        # the kubelet may do it yet
        ("2026-01-01T00:00:00Z", "2026-02-01T00:00:00Z", set(), set()),
        # it has started since
        ("2026-02-01T00:00:09Z", "2026-02-01T00:00:10Z", {"data-demo-kafka-1"}, set()),
    ],
)
def test_a_file_system_that_does_not_grow_in_use_waits_for_its_pod(
    made: str, before: str, names: set[str], uids: set[str]
) -> None:
    claims = brokers(3, 3, 3)
    claims[1] = replace(claims[1], pending=SINCE)
    pods = {f"demo-kafka-{number}": (f"p-{number}", made) for number in range(3)}
    found = storage.pending(claims, pods, before)
    assert (set(found[0]), set(found[1])) == (names, uids)
    assert storage.pending(claims, {}, before)[1] == frozenset()


def test_what_waits_for_a_pod_is_said_and_is_still_ready() -> None:
    """Nothing is wrong meanwhile; the restarts are a roll-out, and that is not ready."""
    growing = ("data-demo-kafka-0", "data-demo-kafka-1")
    told = volumes_fit(healthy(disks=DiskFacts(growing=growing, pending=growing[1:])))
    assert told.ok
    assert told.message == (
        "To be larger: data-demo-kafka-0, data-demo-kafka-1. "
        "File systems grow when pods start again: data-demo-kafka-1."
    )


def test_all_brokers_of_a_new_kafka_may_format() -> None:
    assert storage.may_format(3, [], {}, -1, -1) == (False, frozenset({0, 1, 2}))
    assert storage.may_format(3, brokers(None, None, None), {}, -1, -1) == (
        False,
        frozenset({0, 1, 2}),
    )


@pytest.mark.parametrize(
    ("claims", "ends", "leader", "allowed"),
    [
        # nobody leads: what the empty one has acknowledged may lie on one of the others only
        ((3, None, 3), {}, -1, set()),
        ((3, None, 3), {0: 50, 1: -1, 2: 50}, 0, {1}),
        # the third one has not caught up: with the empty one it would be a majority
        ((3, None, 3), {0: 50, 1: -1, 2: 49}, 0, set()),
        # the word of an empty one counts for nothing, whatever it has fetched since
        ((3, None, None), {0: 50, 1: 50, 2: 50}, 0, set()),
        ((3, None, 3), {0: 50, 1: 50, 2: 50}, 1, set()),
        ((5, 5, None, 5, 5), {0: 50, 1: 9, 2: -1, 3: 50, 4: 50}, 4, {2}),
        ((5, 5, None, 5, None), {0: 50, 1: 9, 2: -1, 3: 50, 4: -1}, 3, set()),
    ],
)
def test_an_empty_broker_joins_when_the_others_hold_what_is_certain(
    claims: tuple[int | None, ...], ends: dict[int, int], leader: int, allowed: set[int]
) -> None:
    made = storage.may_format(len(claims), brokers(*claims), ends, leader, 50)
    assert (made[0], set(made[1])) == (True, allowed)


def test_kept_volumes_of_another_number_of_brokers_are_refused() -> None:
    """Two empty voters would elect one of themselves; the third one's log would be cut."""
    text = storage.foreign("demo", "kafka", 3, brokers(1))
    assert "data-demo-kafka-0" in text
    assert "of 1 servers" in text
    assert storage.foreign("demo", "kafka", 3, brokers(3, 3)) == ""
    assert storage.foreign("demo", "kafka", 3, brokers(None, None)) == ""
    facts = healthy(disks=DiskFacts(foreign={"kafka": text}), sets=without("demo-kafka"))
    assert volumes_fit(facts).message == text
    assert volumes_fit(healthy(disks=DiskFacts(foreign={"kafka": text}))).ok


OLD, BORN, NEW = "2026-01-01T00:00:00Z", "2026-02-01T00:00:00Z", "2026-02-01T00:00:09Z"


@pytest.mark.parametrize(
    ("made", "servers"),
    [
        ((OLD,), (1,)),
        ((OLD, NEW, NEW), (1, None, None)),
        ((OLD, OLD, OLD), (3, 3, 3)),
        ((NEW, NEW, NEW), (None, None, None)),
        ((BORN,), (None,)),
        ((NEW, NEW, OLD), (None, None, 3)),
        (("", "", ""), (None, None, None)),
    ],
)
def test_what_an_earlier_deployment_has_left_is_not_new(
    made: tuple[str, ...], servers: tuple[int | None, ...]
) -> None:
    """It counted as new without the mark, which an operator of earlier does not know."""
    claims = [
        replace(one, made=when)
        for one, when in zip(brokers(*[None] * len(made)), made, strict=True)
    ]
    assert tuple(one.servers for one in storage.inherited(claims, BORN)) == servers


def test_where_there_are_marks_they_count() -> None:
    """One without a mark beside them was made anew, before the deployment was deleted."""
    claims = [replace(one, made=OLD, marked=bool(one.servers)) for one in brokers(3, None, 3)]
    assert storage.inherited(claims, BORN) == tuple(claims)


def test_what_has_never_served_under_an_operator_that_marks_is_new() -> None:
    """A first try that failed, and was deleted: its volumes are kept by default."""
    claims = [replace(one, made=OLD, marked=True) for one in brokers(None, None, None)]
    left = storage.inherited(claims, BORN)
    assert left == tuple(claims)
    assert storage.foreign("demo", "kafka", 1, left) == ""
    assert storage.may_format(3, left, {}, -1, -1) == (False, frozenset({0, 1, 2}))

"""Which records may go: never one that an engine, or its successor, would need."""

import uuid
from dataclasses import replace
from typing import Any

import pytest
from confluent_kafka import Uuid

from espha.protocol.snapshots import KeptSnapshot
from espha.protocol.states import EngineState
from espha_operator.reconcile.kafka_talk import written_id
from espha_operator.reconcile.trim_plan import (
    PATIENCE_S,
    ROLL_BACK_MS,
    SCARCE_PATIENCE_S,
    View,
    decide,
)
from support.status import MODEL_DIGEST, engine_status

NOW = 1_700_000_000_000
IDS = {"p.M": "id-m", "p.a.I": "id-a", "p.b.I": "id-b"}


def kept(sequence: int, **changes: Any) -> KeptSnapshot:
    """A snapshot behind an order record, made a minute ago."""
    made = KeptSnapshot(
        sequence=sequence,
        made=NOW - 60_000,
        model=MODEL_DIGEST,
        order_log=sequence * 2,
        inputs={"p.a.I": sequence * 10, "p.b.I": sequence},
        topics=IDS,
    )
    return made.model_copy(update=changes)


def view(**changes: Any) -> View:
    """Three engines in sync; the last one writes snapshots, the second one has one."""
    engines = [
        engine_status("e-0", EngineState.ACTIVE, sequence=100),
        engine_status("e-1", sequence=99),
        engine_status("e-2", sequence=100),
    ]
    snapshots = {"e-0": [], "e-1": [kept(70)], "e-2": [kept(95), kept(90), kept(85)]}
    base = View(engines, snapshots, 3, "p.M", IDS, NOW)
    return replace(base, **changes)


def test_what_lies_before_the_oldest_snapshot_that_is_needed_goes() -> None:
    trim = decide(view())
    assert trim.before == {"p.M": 140, "p.a.I": 700, "p.b.I": 70}
    assert (trim.ask, trim.why) == ("", "")


def test_of_the_first_engine_all_snapshots_count() -> None:
    """A damaged one, or one from behind a divergence, is passed over for the one before."""
    both = {"e-1": [kept(94)], "e-2": [kept(95), kept(90), kept(85)]}
    assert decide(view(kept=both)).before["p.M"] == 170


def test_one_copy_is_not_enough_and_a_standby_is_asked_for_the_second() -> None:
    trim = decide(view(kept={"e-2": [kept(95)]}))
    assert (trim.before, trim.ask) == ({}, "e-1")
    assert trim.why == "1 of 2 engines have a snapshot of the present model."


def test_an_old_second_copy_is_made_anew_and_counts_until_then() -> None:
    old = kept(20, made=NOW - 200_000)
    trim = decide(view(kept={"e-1": [old], "e-2": [kept(95)]}))
    assert (trim.before["p.M"], trim.ask) == (40, "e-1")


def test_an_engine_that_is_asked_in_vain_is_not_the_only_one_asked() -> None:
    """Its volume is broken, say; the logs must not wait for it."""
    ages = {500_000: "e-1", 600_000: "e-0"}
    for age, asked in ages.items():
        old = kept(20, made=NOW - age)
        assert decide(view(kept={"e-1": [old], "e-2": [kept(95)]})).ask == asked
    there = {"e-0": [kept(94)], "e-1": [kept(20, made=NOW - 600_000)], "e-2": [kept(95)]}
    assert decide(view(kept=there)).before["p.M"] == 188


def test_of_two_engines_the_active_one_is_asked() -> None:
    two = view().engines[0], view().engines[2]
    assert decide(view(engines=two, kept={"e-2": [kept(95)]}, wanted=2)).ask == "e-0"
    there = {"e-0": [kept(80, made=NOW - 300_000)], "e-2": [kept(95)]}
    assert decide(view(engines=two, kept=there, wanted=2)).ask == ""
    there["e-0"] = [kept(80, made=NOW - 700_000)]
    assert decide(view(engines=two, kept=there, wanted=2)).ask == "e-0"


def test_a_single_engine_needs_no_second_copy() -> None:
    trim = decide(view(engines=view().engines[:1], kept={"e-0": [kept(95), kept(90)]}, wanted=1))
    assert (trim.before["p.M"], trim.ask) == (180, "")


def test_an_engine_that_has_gone_does_not_hold_up_the_others() -> None:
    """When it comes back after a day, it takes a snapshot of one of these."""
    there = {"e-0": [kept(80)], "e-2": [kept(95)]}
    trim = decide(view(engines=view().engines[::2], kept=there))
    assert trim.before["p.M"] == 160


@pytest.mark.parametrize("state", [EngineState.STARTING, EngineState.REPLAYING])
def test_an_engine_that_replays_is_waited_for_but_not_for_ever(state: EngineState) -> None:
    behind = engine_status("e-1", state, in_sync=False, sequence=3)
    engines = (view().engines[0], behind, view().engines[2])
    trim = decide(view(engines=engines))
    assert (trim.before, trim.why) == ({}, "Waits for e-1, not in sync yet.")
    assert decide(view(engines=engines, behind_s=PATIENCE_S)).before["p.M"] == 140
    assert decide(view(engines=engines, scarce=True, behind_s=60)).before == {}
    scarce = view(engines=engines, scarce=True, behind_s=SCARCE_PATIENCE_S)
    assert decide(scarce).before["p.M"] == 140


def test_without_an_active_engine_nothing_goes() -> None:
    trim = decide(view(engines=view().engines[1:]))
    assert (trim.before, trim.why) == ({}, "No engine is active.")


def test_no_engine_in_sync_loses_what_it_is_about_to_read() -> None:
    slow = (
        view()
        .engines[1]
        .model_copy(update={"progress": engine_status("e-1", sequence=60).progress})
    )
    trim = decide(view(engines=(view().engines[0], slow, view().engines[2])))
    assert (trim.before, trim.why) == ({}, "An engine is still behind the newest snapshots.")


def test_the_way_back_to_an_earlier_model_stays_open_for_a_day() -> None:
    earlier = kept(10, model="old")
    there = {**view().kept, "e-0": [earlier]}
    assert decide(view(kept=there)).before["p.M"] == 20
    assert decide(view(kept=there, scarce=True)).before["p.M"] == 140
    gone = earlier.model_copy(update={"made": NOW - ROLL_BACK_MS})
    assert decide(view(kept={**there, "e-0": [gone]})).before["p.M"] == 140


def test_the_way_back_is_open_to_a_model_of_other_windows() -> None:
    """It says nothing of topics that its model does not read: these are trimmed as ever."""
    earlier = kept(10, model="old", topics={"p.M": "id-m", "p.old.I": "x"}, inputs={"p.old.I": 5})
    there = {**view().kept, "e-0": [earlier]}
    assert decide(view(kept=there)).before == {"p.M": 20, "p.a.I": 700, "p.b.I": 70}
    for topics in ({"p.M": "id-other"}, {"other.M": "id-other"}):
        foreign = earlier.model_copy(update={"topics": topics})
        assert decide(view(kept={**there, "e-0": [foreign]})).before["p.M"] == 140


def test_snapshots_of_a_topic_that_was_made_anew_count_for_nothing() -> None:
    """Their offsets are those of another topic: they would remove what is needed."""
    trim = decide(view(ids={**IDS, "p.a.I": "id-new"}))
    assert trim.before == {}


def test_a_topic_that_a_needed_snapshot_does_not_know_stays_whole() -> None:
    there = {**view().kept, "e-1": [kept(70, inputs={"p.a.I": 700})]}
    assert decide(view(kept=there)).before == {"p.M": 140, "p.a.I": 700}


def test_what_engines_say_of_topics_of_others_counts_for_nothing() -> None:
    lie = {"p.a.I": 700, "others.I": 10**9}
    there = {name: [one.model_copy(update={"inputs": lie}) for one in found]
             for name, found in view().kept.items()}  # fmt: skip
    assert decide(view(kept=there)).before == {"p.M": 140, "p.a.I": 700}


@pytest.mark.parametrize("first", [b"\xfb\xff", b"\x00\x10", b"\x83\xc1"])
def test_ids_of_topics_are_those_that_snapshots_name(first: bytes) -> None:
    """Engines have them of librdkafka, which writes another base64 than Kafka's tools."""
    given = uuid.UUID(bytes=(first + bytes(range(241, 256)))[:16])
    low, high = (
        value - (value >> 63 << 64) for value in (given.int & ((1 << 64) - 1), given.int >> 64)
    )
    assert written_id(given) == str(Uuid(high, low))

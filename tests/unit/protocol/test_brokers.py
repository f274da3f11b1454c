"""Who holds what, and who leads."""

import pytest

from espha.protocol import brokers


@pytest.mark.parametrize(
    ("count", "copies", "holders"),
    [(1, 1, [0]), (2, 2, [0, 1]), (3, 3, [0, 1, 2]), (5, 3, [0, 1, 2])],
)
def test_the_leader_holds_everything_and_leads_it(
    count: int, copies: int, holders: list[int]
) -> None:
    assert brokers.replicas(count, copies) == holders
    assert holders[0] == brokers.LEADER


def test_a_single_broker_does_not_wait_for_others_to_control() -> None:
    assert brokers.own_settings(brokers.LEADER, 1) == {}
    assert [bool(brokers.own_settings(each, 3)) for each in range(3)] == [True, False, False]


def test_a_broker_beats_often_enough_for_its_session() -> None:
    settings = brokers.broker_settings(3, 3, 2)
    beat, session = (
        int(settings[f"broker.{name}.ms"]) for name in ("heartbeat.interval", "session.timeout")
    )
    assert 3 * beat < session

"""What a union makes of each event."""

from functools import cache

from hypothesis import given, settings
from hypothesis import strategies as st

from espha.kernel import Kernel
from espha.model import Project
from espha.model.events import Event
from support.tables import out, play, put, two

SCHEMA = "id*:int64,x:int64"


@cache
def project(attributes: str, index: str = "pi_HASH", body: str = "") -> Project:
    return two(SCHEMA, SCHEMA, out("union", body, f'index="{index}" {attributes}'))


def test_strict_a_second_insert_is_a_bad_record() -> None:
    for attributes in ("", 'strict="true"'):
        play(
            Kernel(project(attributes)),
            [
                ("l", "I 1,5", "I 1,5"),
                ("r", "I 1,6", "! insert of key 1, which exists"),
                ("r", "U 1,7", "U 1,7; D 1,5"),
                ("l", "P 2,8", "I 2,8"),
                ("r", "D 2,-", "D 2,8"),
                ("l", "D 2,-", "! delete of key 2, which does not exist"),
            ],
        )


def test_not_strict_inserts_become_upserts() -> None:
    play(
        Kernel(project('strict="false"')),
        [
            ("l", "I 1,5", "I 1,5"),
            ("r", "I 1,6", "U 1,6; D 1,5"),
            ("l", "U 2,7", "! update of key 2, which does not exist"),
            ("l", "D 1,-", "D 1,6"),
        ],
    )


def test_without_an_index_events_pass_as_they_are() -> None:
    for strict in ("true", "false"):
        steps = ["I 1,5", "I 1,5", "U 3,1", "P 1,7", "D 9,-", "SD 9,-"]
        kernel = Kernel(project(f'strict="{strict}"', "pi_EMPTY"))
        play(kernel, [("lr"[place % 2], step, step) for place, step in enumerate(steps)])


def test_the_rows_of_a_union_can_leave() -> None:
    retention = '<retention type="bycount_sliding">1</retention>'
    kernel = Kernel(project('strict="false"', body=retention))
    assert put(kernel, "I 1,5", window="l") == "I 1,5"
    assert put(kernel, "I 1,6", window="r") == "U 1,6; D 1,5"
    assert put(kernel, "I 2,7", window="r") == "I 2,7; D/R 1,6"


inserts = st.lists(
    st.tuples(st.sampled_from("lr"), st.sampled_from("IPUD"), st.integers(0, 3), st.integers()),
    max_size=40,
)


@settings(max_examples=60)
@given(inserts)
def test_not_strict_the_last_writer_wins(events: list[tuple[str, str, int, int]]) -> None:
    kernel, expected = Kernel(project('strict="false"')), dict[int, int]()
    for side, opcode, key, number in events:
        value = number % 2**63
        kernel.publish(f"q/{side}", Event(opcode, "N", (key, value)), 0)
        if opcode in "IP" or (opcode == "U" and key in expected):
            expected[key] = value
        elif opcode == "D":
            expected.pop(key, None)
    (rows,) = kernel.state()["windows"]["q/out"][1:]
    assert rows == {(key,): (key, value) for key, value in expected.items()}

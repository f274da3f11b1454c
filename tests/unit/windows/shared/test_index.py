"""The index of a window, apart from everything else."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from espha.model.events import BadRecord, Event
from espha.model.project import Field
from espha.windows.shared.index import Index, Rows
from espha.windows.shared.stage import Moment
from support.tables import event, text

FIELDS = (Field("a", "int64", True), Field("x", "int64"), Field("b", "string", True))


def step(index: Index, words: str) -> str:
    return "; ".join(text(unit) for unit in index.process((event(words),), Moment()))


def test_a_key_is_null_when_all_of_its_parts_are() -> None:
    index = Index(FIELDS)
    assert step(index, "I 1,5,-") == "I 1,5,-"
    assert step(index, "I -,5,one") == "I -,5,one"
    assert step(index, "P 1,6,-") == "U 1,6,-; D 1,5,-"
    with pytest.raises(BadRecord, match="the key is null"):
        step(index, "I -,5,-")
    with pytest.raises(BadRecord, match="insert of key 1, null, which exists"):
        step(index, "I 1,5,-")


def test_the_flag_of_retention_goes_on_and_partial_does_not() -> None:
    index = Index(FIELDS)
    assert step(index, "I/R 1,5,one") == "I/R 1,5,one"
    assert step(index, "U/R 1,6,one") == "U/R 1,6,one; D/R 1,5,one"
    assert step(index, "U/P 1,-,one") == "U 1,6,one; D 1,6,one"
    assert step(index, "D/P 1,-,one") == "D 1,6,one"
    assert step(index, "I 1,5,one") == "I 1,5,one"
    assert step(index, "D/R 1,5,one") == "D/R 1,5,one"


def test_of_an_update_block_the_new_row_counts() -> None:
    index = Index(FIELDS)
    step(index, "I 1,5,one")
    block = (event("U 1,7,one"), event("D 1,99,one"))
    (unit,) = index.process(block, Moment())
    assert text(unit) == "U 1,7,one; D 1,5,one"


steps = st.lists(
    st.builds(
        Event,
        st.sampled_from(["I", "U", "P", "D", "SD"]),
        st.sampled_from(["N", "P"]),
        st.tuples(st.integers(0, 2), st.integers() | st.none(), st.just("b")),
    )
)


@given(steps)
def test_asking_for_a_change_changes_nothing(events: list[Event]) -> None:
    rows, index = Rows(FIELDS), Index(FIELDS)
    for one in events:
        before = rows.state()
        try:
            change = rows.change((one,))
        except BadRecord:
            with pytest.raises(BadRecord):
                index.process((one,), Moment())
            assert rows.state() == before == index.state()
            continue
        assert rows.state() == before
        units = list(index.process((one,), Moment()))
        assert units == ([] if change is None else [change.unit()])
        if change is not None:
            rows.apply(change)
        assert rows.state() == index.state()

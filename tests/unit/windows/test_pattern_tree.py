"""What each operator of a pattern's logic waits for, event by event."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from espha.recovery.plain import dumps, loads
from espha.windows.pattern.logic import Logic, LogicError, parse_logic
from espha.windows.pattern.tree import DONE, FAILED, LIKELY, Instance, Offer, Tree

EVENTS = ("a", "b", "c", "d", "x")
SECOND = 1_000_000


def letter(name: str):  # type: ignore[no-untyped-def]
    """An event is a letter; the event of interest of the same name takes it."""
    return lambda offer: offer.row == (name,)


class Attempt:
    """One instance of a pattern, opened by its first letter."""

    def __init__(self, logic: str) -> None:
        parsed = parse_logic(logic, EVENTS)
        self.tree = Tree(parsed, {name: letter(name) for name in EVENTS})
        self.instance = Instance(0, (), self.tree)
        self.tree.root.start(Offer(self.instance, 0, (), 0))
        self.ended: int | None = None

    def event(self, name: str, time: int = 0) -> None:
        """Offer a letter."""
        self.time(time)
        if self.ended is None:
            self._settle(self.tree.root.take(Offer(self.instance, 0, (name,), time)))

    def time(self, now: int) -> None:
        """Let time pass."""
        while self.ended is None:
            end = self.tree.root.deadline(self.instance)
            if end is None or end >= now:
                return
            self._settle(self.tree.root.lapse(Offer(self.instance, -1, (), end)))

    def _settle(self, status: int | None) -> None:
        if status in {FAILED, LIKELY, DONE}:
            self.ended = status


def ends(logic: str, events: str) -> str:
    """Play letters, one a second (a dot is a second without one); return "+3" or "-3" or ""."""
    attempt = Attempt(logic)
    for second, name in enumerate(events):
        if name == ".":
            attempt.time(second * SECOND)
        else:
            attempt.event(name, second * SECOND)
        if attempt.ended is not None:
            return f"{'-' if attempt.ended == FAILED else '+'}{second}"
    return ""


@pytest.mark.parametrize(
    ("logic", "events", "end"),
    [
        # fby: one after the other, others may come between
        ("fby(a,b)", "ab", "+1"),
        ("fby(a,b)", "axxb", "+3"),
        ("fby(a,b)", "aa", ""),
        ("fby(a,b,c)", "acb", ""),
        ("fby(a,b,c)", "acbc", "+3"),
        ("fby(a,fby(b,c))", "abc", "+2"),
        ("fby(fby(a,b),c)", "abxc", "+3"),
        # with a limit, from its first event on; its last moment counts
        ("fby{3 seconds}(a,b)", "a..b", "+3"),
        ("fby{3 seconds}(a,b)", "a...b", "-4"),
        ("fby{3 seconds}(a,b)", "a....", "-4"),
        ("fby{9 seconds}(a,fby{2 seconds}(b,c))", "a...b.c", "+6"),
        ("fby{9 seconds}(a,fby{2 seconds}(b,c))", "a...b..c", "-7"),
        ("fby{4 seconds}(fby{2 seconds}(a,b),c)", "ab..c", "+4"),
        ("fby{4 seconds}(fby{2 seconds}(a,b),c)", "a..b", "-3"),
        # and: all, in any order
        ("and(a,b)", "ba", "+1"),
        ("and(a,b,c)", "cxab", "+3"),
        ("fby(a,and(b,c))", "acb", "+2"),
        ("and{2 seconds}(a,b)", "b.a", "+2"),
        ("and{2 seconds}(a,b)", "b..a", "-3"),
        ("fby(a,and{2 seconds}(b,c))", "a....b.c", "+7"),
        # or: any
        ("or(a,b)", "b", "+0"),
        ("fby(a,or(b,c))", "ac", "+1"),
        ("or(fby(a,b),fby(c,d))", "acd", "+2"),
        # is: the very next ones
        ("fby(a,is(b))", "ab", "+1"),
        ("fby(a,is(b))", "axb", "-1"),
        ("fby(a,is:3(b))", "abbb", "+3"),
        ("fby(a,is:3(b))", "abbxb", "-3"),
        ("is:3(a)", "aaa", "+2"),
        ("is:2(or(a,b))", "ab", "+1"),
        ("fby(a,is:2(b),c)", "abbxc", "+4"),
        ("fby(a,is(fby(b,c)))", "abc", "+2"),
        ("fby(a,is(fby(b,c)))", "abxc", "-2"),
        ("fby(a,is(not(b)),c)", "axbc", "+3"),
        ("fby(a,is(not(b)),c)", "ab", "-1"),
        ("fby(not(not(a)),not(not(b)))", "ab", "+1"),
        ("fby(not(not(a)),not(not(b)))", "axb", "-1"),
        # not without a limit: about the next event
        ("fby(a,not(b))", "ax", "+1"),
        ("fby(a,not(b))", "ab", "-1"),
        ("fby(a,not(b),c)", "ac", "+1"),
        ("fby(a,not(b),c)", "axc", "+2"),
        ("fby(a,not(b),c)", "axbc", "+3"),
        ("fby(a,not(b),c)", "abc", "-1"),
        # notoccur without a limit: never, as far as the pattern goes
        ("fby(a,notoccur(b),c)", "ac", "+1"),
        ("fby(a,notoccur(b),c)", "axxc", "+3"),
        ("fby(a,notoccur(b),c)", "axbc", "-2"),
        ("fby(a,notoccur(b))", "ax", "+1"),
        ("fby(a,notoccur(b))", "ab", "-1"),
        ("and(a,notoccur(b))", "a", "+0"),
        ("fby(a,notoccur(b),fby(c,d))", "acbd", "-2"),
        ("fby(a,notoccur(b),c,d)", "acbd", "+3"),
        ("fby(a,notoccur(b),notoccur(x),c)", "ac", "+1"),
        ("fby(a,notoccur(b),notoccur(x),c)", "adx", "-2"),
        # under a limit around them, both look out until its end
        ("fby{3 seconds}(a,not(b))", "a...", ""),
        ("fby{3 seconds}(a,not(b))", "a....", "+4"),
        ("fby{3 seconds}(a,not(b))", "ax...", "+4"),
        ("fby{3 seconds}(a,not(b))", "a..b", "-3"),
        ("fby{3 seconds}(a,not(b))", "a...b", "+4"),
        ("fby{3 seconds}(a,notoccur(b))", "a.x.c", "+4"),
        ("fby{3 seconds}(a,not(b),c)", "axc", "+2"),
        ("fby{3 seconds}(a,not(b),c)", "axbc", "-2"),
        ("fby{3 seconds}(a,not(b),c)", "a....", "-4"),
        ("fby{6 seconds}(a,and(b,c),not(d))", "acb....", ""),
        ("fby{6 seconds}(a,and(b,c),not(d))", "acb.....", "+7"),
        ("fby{6 seconds}(a,and(b,c),not(d))", "adcb....", "+7"),
        ("fby{6 seconds}(a,and(b,c),not(d))", "acbd", "-3"),
        ("fby{6 seconds}(a,and(b,c),not(d))", "ac......", "-7"),
        ("and{3 seconds}(a,not(b))", "a...x", "+4"),
        ("and{3 seconds}(a,not(b))", "a.b", "-2"),
        # under a limit of their own, nothing goes past them before its end
        ("fby(a,notoccur{2 seconds}(b))", "a...", "+3"),
        ("fby(a,notoccur{2 seconds}(b))", "a.b", "-2"),
        ("fby(a,notoccur{2 seconds}(b),c)", "ac...c", "+5"),
        ("fby(a,notoccur{2 seconds}(b),c)", "a.bc", "-2"),
        ("fby(a,notoccur{2 seconds}(b),c)", "a...bc", "+5"),
        ("fby{9 seconds}(a,notoccur{2 seconds}(b),c)", "a..........", "-10"),
        # what must not occur can be a pattern; each failed attempt of it begins anew
        ("fby(a,notoccur(fby(b,c)),d)", "abd", "+2"),
        ("fby(a,notoccur(fby(b,c)),d)", "abcd", "-2"),
        ("fby(a,notoccur(fby{2 seconds}(b,c)),d)", "ab...cd", "+6"),
        ("fby(a,notoccur(fby{2 seconds}(b,c)),d)", "ab...bc", "-6"),
        # an or that loses what let others begin
        ("fby(a,or(b,notoccur(c)),d)", "axcd", ""),
        ("fby(a,or(b,notoccur(c)),d)", "axcbd", "+4"),
        ("fby{9 seconds}(a,or(b,not(c)),fby{2 seconds}(d,x))", "adc....b.dx", "-10"),
        ("fby(a,or{2 seconds}(b,not(c)))", "a...", "+3"),
    ],
)
def test_where_an_instance_ends(logic: str, events: str, end: str) -> None:
    assert ends(logic, events) == end


@pytest.mark.parametrize(
    ("logic", "reason"),
    [
        ("", "the logic is empty"),
        ("fby(a", "ends too early; is a ) missing?"),
        ("fby(a,,b)", "line 1, column 7: ',b)' cannot be read here"),
        ("fby(a,\n  e9)", "line 2, column 3: event 'e9' is not one of: a, b, c, d, x"),
        ("fby(a,a)", "line 1, column 7: event 'a' occurs twice"),
        ("not(a)", "no event can begin this pattern"),
        ("fby(notoccur(a),b)", "no event can begin this pattern"),
        ("not(a,b)", "not takes one operand, not 2"),
        ("and:2(a,b)", "a count goes with is, not with and"),
        ("is:0(a)", "the count of is goes from 1 to 10000"),
        ("fby{3 weeks}(a,b)", "line 1, column 7: 'weeks}(a,b)' cannot be read here"),
        ("fby{0 seconds}(a,b)", "a limit is longer than nothing"),
        ("fby{" + "9" * 5000 + " days}(a,b)", "at most 36500 days"),
        ("fby", "event 'fby' (an operator takes its operands in parentheses)"),
        ("fby(" * 21 + "a" + ")" * 21, "nested deeper than 20"),
        ("a " * 9_000, "longer than 10000 characters"),
    ],
)
def test_logic_that_cannot_be_used_is_refused_with_its_place(logic: str, reason: str) -> None:
    with pytest.raises(LogicError) as caught:
        parse_logic(logic, EVENTS)
    assert reason in str(caught.value)


def test_an_operator_in_any_case_and_an_event_with_its_name() -> None:
    assert str(parse_logic("FBY { 1 hour 30 Minutes } (not, IS : 2 (x))", ["not", "x"])) == (
        "fby{5400000000 microseconds}(not,is:2(x))"
    )


names = st.sampled_from(EVENTS)


@st.composite
def logics(draw: st.DrawFn) -> Logic:
    """Draw logic in which an event may stand anywhere, but once."""
    free = list(EVENTS)

    def part(depth: int) -> str:
        if depth == 3 or len(free) < 3 or draw(st.booleans()):
            return free.pop(draw(st.integers(0, len(free) - 1)))
        operator = draw(st.sampled_from(["fby", "and", "or", "not", "notoccur", "is", "is:2"]))
        limit = draw(st.sampled_from(["", "", "{2 seconds}", "{5 seconds}"]))
        many = 1 if operator[0] in "ni" else draw(st.integers(1, 2))
        return f"{operator}{limit}({','.join(part(depth + 1) for _ in range(many) if free)})"

    try:
        return parse_logic(part(0), EVENTS)
    except LogicError:
        return parse_logic("fby{5 seconds}(a,not(b))", EVENTS)


def test_a_written_logic_reads_back() -> None:
    text = "fby{30 seconds}(a, and(b, or(c, is:2(d))), notoccur{5 milliseconds}(x))"
    logic = parse_logic(text, EVENTS)
    assert parse_logic(str(logic), EVENTS) == logic


@given(logics(), st.text("abcdx.", max_size=15), st.integers(0, 15))
def test_an_instance_goes_on_after_a_restore(logic: Logic, events: str, cut: int) -> None:
    whole, first, second = (Attempt(str(logic)) for _ in range(3))
    for second_, name in enumerate(events):
        split = first if second_ < cut else second
        if second_ == cut:
            second.instance.restore(loads(dumps(first.instance.state())))
            second.ended = first.ended
        for attempt in (whole, split):
            attempt.time(second_ * SECOND)
            if name != ".":
                attempt.event(name, second_ * SECOND)
    if cut < len(events):
        assert second.ended == whole.ended
        assert second.instance.state() == whole.instance.state()


@given(st.lists(names, min_size=1, max_size=4, unique=True), st.text("abcdx.", max_size=12),
       st.integers(1, 9))  # fmt: skip
def test_fby_is_a_walk_along_the_events(order: list[str], events: str, limit: int) -> None:
    """Against the plain statement: the first fitting event each, all within the limit."""
    logic = f"fby{{{limit} seconds}}({','.join(order)})"
    place, begun, expected = 0, None, ""
    for second, name in enumerate(events):
        if begun is not None and second - begun > limit:
            expected = f"-{second}"
            break
        if name == order[place]:
            begun = second if begun is None else begun
            place += 1
            if place == len(order):
                expected = f"+{second}"
                break
    assert ends(logic, events) == expected

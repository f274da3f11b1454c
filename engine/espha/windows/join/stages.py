"""Join windows.

One side streams (the facts), the other one is the table. Both are kept by key and by what they
are joined on. A change recomputes the results that it can affect and emits what is different from
what was emitted before: D for a result that is gone, an update block for one that stays, I for a
new one. What was emitted is kept, because without regeneration it need not be what the rows of
now would give.

A join without an index and without regeneration keeps the table only: facts pass through.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from espha.languages.eel import Language, converter
from espha.model.events import BadRecord, Event, Value
from espha.model.project import Field
from espha.windows.join.keys import Column
from espha.windows.join.spec import JoinWindow, joined_fields
from espha.windows.shared.index import Change, Row, Rows, index_of
from espha.windows.shared.one_by_one import OneByOne
from espha.windows.shared.stage import Moment, Stage, Unit, places

Results = dict[Row, Row]
"""Result rows by result key."""


def stages(window: JoinWindow, feeds: Sequence[tuple[Field, ...]]) -> list[Stage]:
    """Return the stages of a join window."""
    left, right = feeds[window.left], feeds[1 - window.left]
    maker = Maker(window, left, right)
    if window.pairs and not window.stateful:
        return [Pairing(window, maker, left, right)]
    passes = not window.keeps_facts or not (window.stateful or window.regenerates)
    if passes and window.join_type != "fullouter":
        look_up = LookUp(window, maker, left, right)
        return [look_up, index_of(window)] if window.stateful else [look_up]
    return [(TaggedJoin if window.tagged else Join)(window, maker, left, right)]


class Cause(NamedTuple):
    """What expressions see of the event that made a result come."""

    opcode: str
    flags: str
    clock: int


class Maker:
    """Makes result rows of a fact and a table row; None is no row."""

    def __init__(self, window: JoinWindow, left: Sequence[Field], right: Sequence[Field]) -> None:
        fields = joined_fields(left, right)
        self.language = Language(fields, window.initialize)
        self._none = ((None,) * len(left), (None,) * len(right))
        self._swapped = window.facts == "right"
        self._columns = [
            self._column(column, field, fields)
            for column, field in zip(window.columns, window.fields, strict=True)
        ]
        self._key = [place for place, field in enumerate(window.fields) if field.key]
        # Most joins only select fields.
        computes = any(column.expression or column.otherwise for column in window.columns)
        self._places = [] if computes else places([one.source for one in window.columns], fields)

    def _column(
        self, column: Column, field: Field, fields: Sequence[Field]
    ) -> Callable[[Event, int], Value]:
        if column.expression:
            return self._computed(column.expression, field.type)
        (place,) = places([column.source], fields)
        if not column.otherwise:
            return lambda event, clock: event.values[place]
        (other,) = places([column.otherwise], fields)

        def either(event: Event, clock: int) -> Value:
            value = event.values[place]
            return event.values[other] if value is None else value

        return either

    def _computed(self, text: str, type_: str) -> Callable[[Event, int], Value]:
        expression = self.language.compile(text)
        convert, run = converter(expression.type, type_), expression.run

        def value(event: Event, clock: int) -> Value:
            try:
                result: Value = convert(run(event, clock))
            except BadRecord:
                # It takes too many steps. The rows have changed by now: the result is unknown.
                return None
            return result

        return value

    def row(self, fact: Row | None, table: Row | None, cause: Cause) -> Row:
        """Return the result row."""
        left, right = (table, fact) if self._swapped else (fact, table)
        values = (self._none[0] if left is None else left) + (
            self._none[1] if right is None else right
        )
        if self._places:
            return tuple([values[place] for place in self._places])
        event, clock = Event(cause.opcode, cause.flags, values), cause.clock
        return tuple([column(event, clock) for column in self._columns])

    def key(self, row: Row) -> Row:
        """Return the key of a result row."""
        return tuple([row[place] for place in self._key])


class Kept:
    """The rows of one side, by key and by what they are joined on."""

    def __init__(self, fields: Sequence[Field], on: Iterable[str]) -> None:
        self.rows = Rows(fields)
        self._on = places(on, fields)
        self._by_value: dict[Row, dict[Row, None]] = {}

    def value(self, row: Row) -> Row | None:
        """Return what a row is joined on; None when a part is null, which equals nothing."""
        value = tuple([row[place] for place in self._on])
        return None if None in value else value

    def partners(self, value: Row | None) -> Iterable[Row]:
        """Return the keys of the rows with this value, the oldest first."""
        return () if value is None else self._by_value.get(value, ())

    def apply(self, change: Change) -> None:
        """Make a change; a row that is joined on something else now becomes the youngest."""
        key, old, new, _ = change
        before = None if old is None else self.value(old)
        after = None if new is None else self.value(new)
        if old is not None and new is not None and before != after:
            del self.rows.by_key[key]
        self.rows.apply(change)
        if before == after:
            return
        if before is not None:
            partners = self._by_value[before]
            del partners[key]
            if not partners:
                del self._by_value[before]
        if after is not None:
            self._by_value.setdefault(after, {})[key] = None

    def state(self) -> Any:
        """Return the rows, in an order that gives the order of partners again."""
        return OneByOne(self.rows.by_key.items)

    def restore(self, state: Any) -> None:
        """Take over the rows."""
        self.rows.restore(dict(state))
        self._by_value = {}
        for key, row in state:
            value = self.value(row)
            if value is not None:
                self._by_value.setdefault(value, {})[key] = None


class _Sides:
    """What the three ways to join share."""

    def __init__(
        self, window: JoinWindow, maker: Maker, left: Sequence[Field], right: Sequence[Field]
    ) -> None:
        lefts = Kept(left, [pair[0] for pair in window.conditions])
        rights = Kept(right, [pair[1] for pair in window.conditions])
        swapped = window.facts == "right"
        self._maker = maker
        self._facts, self._table = (rights, lefts) if swapped else (lefts, rights)
        self._fact_port = 1 - window.left if swapped else window.left
        self._every_fact = window.join_type != "inner"
        self._every_table_row = window.join_type == "fullouter"

    def _with_table(self, fact: Row, cause: Cause) -> list[tuple[Row | None, Row]]:
        """Return the results of a fact and the table as it is, each with the table row's key."""
        table, maker = self._table, self._maker
        rows: list[tuple[Row | None, Row]] = [
            (key, maker.row(fact, table.rows.by_key[key], cause))
            for key in table.partners(self._facts.value(fact))
        ]
        if not rows and self._every_fact:
            rows = [(None, maker.row(fact, None, cause))]
        return rows


class Affected(NamedTuple):
    """Whose results can be others now.

    Attributes:
        facts: keys of facts; True: the fact has changed, False: only something in the table.
        table_rows: keys of table rows that are in the result without a fact, or were.
        changed: keys of the table rows that have changed.
    """

    facts: dict[Row, bool]
    table_rows: dict[Row, None]
    changed: dict[Row, None]


class Join(_Sides):
    """Keeps both sides and what was emitted."""

    def __init__(
        self, window: JoinWindow, maker: Maker, left: Sequence[Field], right: Sequence[Field]
    ) -> None:
        super().__init__(window, maker, left, right)
        self._regenerates = window.regenerates
        self._of_fact: dict[Row, Results] = {}
        self._of_table_row: dict[Row, Results] = {}

    def process(self, unit: Unit, at: Moment) -> Sequence[Unit]:
        """Take a change of one side; return the changes of the results."""
        affected = self._apply(unit, at.port)
        if affected is None:
            return ()
        return self._refresh(affected, Cause(unit[0].opcode, _because(unit), at.clock))

    def _apply(self, unit: Unit, port: int) -> Affected | None:
        """Make a change of one side; say whose results can be others now."""
        from_facts = port == self._fact_port
        side = self._facts if from_facts else self._table
        change = side.rows.change(unit)
        if change is None:
            return None
        side.apply(change)
        return self._by_fact(change) if from_facts else self._by_table_row(change)

    def _by_fact(self, change: Change) -> Affected:
        table_rows: dict[Row, None] = {}
        if self._every_table_row:
            for row in (change.old, change.new):
                if row is not None:
                    table_rows |= dict.fromkeys(self._table.partners(self._facts.value(row)))
        return Affected({change.key: True}, table_rows, {})

    def _by_table_row(self, change: Change) -> Affected:
        facts: dict[Row, bool] = {}
        if self._regenerates:
            for row in (change.old, change.new):
                if row is not None:
                    facts |= dict.fromkeys(self._facts.partners(self._table.value(row)), False)
        own = {change.key: None}
        return Affected(facts, own if self._every_table_row else {}, own)

    def _refresh(self, affected: Affected, cause: Cause) -> list[Unit]:
        """Compute results again; return what is different, and what a changed row is part of."""
        before: Results = {}
        after: Results = {}
        as_before: set[Row] = set()
        for key, own in affected.facts.items():
            before |= self._of_fact.pop(key, {})
            fact = self._facts.rows.by_key.get(key)
            results: Results = {}
            for partner, row in () if fact is None else self._with_table(fact, cause):
                result_key = self._maker.key(row)
                results[result_key] = row
                if not own and partner is not None and partner not in affected.changed:
                    as_before.add(result_key)
            if results:
                self._of_fact[key] = results
                after |= results
        for key in affected.table_rows:
            before |= self._of_table_row.pop(key, {})
            results = self._alone(key, cause)
            if results:
                self._of_table_row[key] = results
                after |= results
        for result_key in as_before:
            if before.get(result_key) == after[result_key]:
                del before[result_key], after[result_key]
        return difference(before, after, cause.flags)

    def _alone(self, key: Row, cause: Cause) -> Results:
        """Return the result of a table row that no fact has."""
        row = self._table.rows.by_key.get(key)
        if row is None or self._facts.partners(self._table.value(row)):
            return {}
        result = self._maker.row(None, row, cause)
        return {self._maker.key(result): result}

    def state(self) -> Any:
        """Return both sides, and what was emitted."""
        return (
            self._facts.state(),
            self._table.state(),
            OneByOne(lambda: _emitted(self._of_fact)),
            OneByOne(lambda: _emitted(self._of_table_row)),
            self._maker.language.state(),
        )

    def restore(self, state: Any) -> None:
        """Take over a state."""
        facts, table, of_fact, of_table_row, language = state
        self._facts.restore(facts)
        self._table.restore(table)
        self._of_fact = {key: dict(results) for key, results in of_fact}
        self._of_table_row = {key: dict(results) for key, results in of_table_row}
        self._maker.language.restore(language)


def _emitted(results: dict[Row, Results]) -> Iterable[Any]:
    for key, emitted in results.items():
        yield key, tuple(emitted.items())


class TaggedJoin(Join):
    """Takes what one source event does on both sides together: one event gives one result."""

    def process_together(
        self, arrivals: Sequence[tuple[int, Unit]], at: Moment
    ) -> Sequence[Sequence[Unit] | BadRecord]:
        """Make all changes, the table's first; return the changes of the results."""
        results: list[Sequence[Unit] | BadRecord] = []
        facts: dict[Row, bool] = {}
        together = Affected(facts, {}, {})
        cause = None
        for port, unit in sorted(arrivals, key=lambda arrival: arrival[0] == self._fact_port):
            try:
                affected = self._apply(unit, port)
            except BadRecord as refusal:
                results.append(refusal)
                continue
            if affected is not None:
                cause = Cause(unit[0].opcode, _because(unit), at.clock)
                for key, own in affected.facts.items():
                    # What the event itself brings comes behind the rows that were there.
                    facts[key] = facts.pop(key, False) or own
                together.table_rows.update(affected.table_rows)
                together.changed.update(affected.changed)
        if cause is not None:
            results.append(self._refresh(together, cause))
        return results


def _because(unit: Unit) -> str:
    return "R" if unit[0].flags == "R" else "N"


class LookUp(_Sides):
    """Keeps the table; facts pass through, joined with the table as it is then."""

    def process(self, unit: Unit, at: Moment) -> Sequence[Unit]:
        """Take a change of the table, or return a fact with its partners."""
        if at.port != self._fact_port:
            change = self._table.rows.change(unit)
            if change is not None:
                self._table.apply(change)
            return ()
        opcode, flags, values = unit[0]
        new = self._with_table(values, Cause(opcode, flags, at.clock))
        if len(unit) == 1:
            return [(Event(opcode, flags, row),) for _, row in new]
        old = self._with_table(unit[1].values, Cause("D", flags, at.clock))
        return difference(self._by_key(old), self._by_key(new), flags)

    def _by_key(self, results: Iterable[tuple[Row | None, Row]]) -> Results:
        return {self._maker.key(row): row for _, row in results}

    def state(self) -> Any:
        """Return the table."""
        return self._table.state(), self._maker.language.state()

    def restore(self, state: Any) -> None:
        """Take over the table."""
        table, language = state
        self._table.restore(table)
        self._maker.language.restore(language)


class Pairing(_Sides):
    """Keeps nothing but what one source event has led to: pairs what comes on both sides."""

    def __init__(
        self, window: JoinWindow, maker: Maker, left: Sequence[Field], right: Sequence[Field]
    ) -> None:
        super().__init__(window, maker, left, right)
        self._token = -1
        self._seen: tuple[list[Unit], list[Unit]] = ([], [])

    def process(self, unit: Unit, at: Moment) -> Sequence[Unit]:
        """Pair a unit with all of the same source event that came on the other side."""
        if at.token != self._token:
            self._token, self._seen = at.token, ([], [])
        is_fact = at.port == self._fact_port
        mine, others = self._seen if is_fact else self._seen[::-1]
        mine.append(unit)
        pairs = [(unit, other) if is_fact else (other, unit) for other in others]
        return [paired for fact, row in pairs for paired in self._pair(fact, row, at.clock)]

    def _pair(self, fact: Unit, row: Unit, clock: int) -> list[Unit]:
        new = self._result(fact[0], row[0], clock)
        if len(fact) == 1:
            opcode, flags = fact[0].opcode, fact[0].flags
            return [(Event(opcode, flags, result),) for result in new.values()]
        return difference(self._result(fact[1], row[-1], clock), new, fact[0].flags)

    def _result(self, fact: Event, row: Event, clock: int) -> Results:
        value = self._facts.value(fact.values)
        if value is None or value != self._table.value(row.values):
            return {}
        result = self._maker.row(fact.values, row.values, Cause(fact.opcode, fact.flags, clock))
        return {self._maker.key(result): result}

    def state(self) -> Any:
        """Return what the last source event has led to."""
        seen = tuple(
            tuple(tuple(tuple(event) for event in unit) for unit in side) for side in self._seen
        )
        return self._token, seen, self._maker.language.state()

    def restore(self, state: Any) -> None:
        """Take over what was seen."""
        self._token, seen, language = state
        first, second = ([tuple(Event(*event) for event in unit) for unit in side] for side in seen)
        self._seen = (first, second)
        self._maker.language.restore(language)


def difference(before: Results, after: Results, flags: str) -> list[Unit]:
    """Return how results become others: first those that are gone, then the rest."""
    units: list[Unit] = [
        (Event("D", flags, row),) for key, row in before.items() if key not in after
    ]
    for key, row in after.items():
        old = before.get(key)
        if old is None:
            units.append((Event("I", flags, row),))
        else:
            units.append((Event("U", flags, row), Event("D", flags, old)))
    return units

"""A table that holds exactly what was read, whatever dies at whatever moment.

The position is a row of `espha_positions` in the same database, changed in the transaction that
writes the rows, and first of all: its lock keeps apart who else may be there, such as the
adapter's own connection of before, whose commit is still under way. If the row says what it was to
say, that commit has succeeded.
"""

import errno
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from sqlalchemy import (
    BigInteger,
    Column,
    Connection,
    Engine,
    MetaData,
    Table,
    Text,
    insert,
    inspect,
    select,
    update,
)
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.exc import NoSuchTableError, SQLAlchemyError

from espha.adapters.config import ConfigError
from espha.adapters.copying import Taken
from espha.adapters.output_records import Rejected, output_reader, rejected
from espha.adapters.table_output.columns import FLAGS, OFFSET, OPCODE, Row, columns, row_writer
from espha.adapters.table_output.databases import is_of_a_row, name_of, shortly, transaction
from espha.adapters.table_output.spec import OutputTable
from espha.adapters.table_output.statements import statements
from espha.model import Window
from espha.model.events import BadRecord, Event
from espha.model.updates import UpdateBlocks
from espha.protocol.status import OutputProgress

_DELETES = frozenset({"D", "SD"})


class Change(NamedTuple):
    """What an event does to the table: the row of its key is written, or deleted."""

    record: Taken
    deletes: bool
    row: Row


class TableTarget:
    """The table; see `espha.adapters.copying.Target`.

    Raises:
        ConfigError: the table cannot take the window's rows, or is of another topic.
        OSError: the database is away.
    """

    def __init__(
        self,
        place: OutputTable,
        window: Window,
        topic: str,
        topic_id: str,
        engine: Engine,
        *,
        moved: Callable[[], None] = lambda: None,
    ) -> None:
        self._place, self._engine, self._moved = place, engine, moved
        self._topic, self._topic_id = topic, topic_id
        zones = engine.dialect.name == "postgresql"
        self._window, self._read = window, output_reader(window)
        self._row = row_writer(window.fields, zones=zones)
        self._keys = [field.name for field in window.fields if field.key]
        schema, _, name = place.table.rpartition(".")
        meta = MetaData(schema=schema or None)
        self._table = Table(name, meta, *columns(window, place.mode, zones=zones))
        self._positions = _positions(meta)
        self._rejects = _rejects(meta)
        keys = self._keys if place.mode == "upsert" else []
        self._statements = statements(engine.dialect, self._table, keys)
        aside = (postgresql if zones else sqlite).insert(self._rejects)
        self._put_aside = aside.on_conflict_do_nothing()
        self._rejected = 0
        self.offset, self._open_update = self._start()

    def append(self, records: Sequence[Taken], offset: int) -> None:
        """Write records and position in one transaction; see `espha.adapters.copying.Target`."""
        if offset == self.offset:
            return
        changes, bad, open_update = self._changes(records)
        try:
            self._write(offset, open_update, bad, lambda to: self._apply_all(to, changes))
        except SQLAlchemyError:  # one of them is at fault: which?
            self._write_each(offset, open_update, bad, changes)
        self.offset, self._open_update = offset, open_update
        self._rejected += len(bad)

    def settle(self) -> None:
        """Have nothing to do: what was appended is there."""

    def progress(self, rows: int) -> OutputProgress:
        """Return what the status shows; see `espha.adapters.copying.Target`."""
        return OutputProgress(rows=rows, rejected=self._rejected, offset=self.offset)

    def _start(self) -> tuple[int, str]:
        """Make what is not there, and return the position."""
        try:
            with transaction(self._engine) as connection:
                found = self._found(connection)
                self._table.metadata.create_all(connection)
                self._check_columns(connection)
                if found is None:
                    fresh = {**self._is_mine(), "next_offset": 0, "open_update": ""}
                    connection.execute(insert(self._positions), fresh)
                    return 0, ""
                return found
        except SQLAlchemyError as error:  # two at once: the next try finds what the other made
            raise OSError(errno.EIO, shortly(error)) from None

    def _found(self, connection: Connection) -> tuple[int, str] | None:
        look = inspect(connection)
        if not look.has_table(self._positions.name, schema=self._positions.schema):
            return None
        row = self._position(connection)
        if row is None:
            return None
        if (row.topic, row.topic_id) != (self._topic, self._topic_id):
            raise ConfigError(
                f"{name_of(self._place)} was written from another topic ({row.topic}, id "
                f"{row.topic_id}); it would now be {self._topic}, id {self._topic_id}. Name "
                f"another table, or empty it and delete its row in {self._positions.fullname}"
            )
        gone = not look.has_table(self._table.name, schema=self._table.schema)
        if gone and row.next_offset:
            raise ConfigError(
                f"{name_of(self._place)} is gone, but {self._positions.fullname} says that it was "
                f"written up to offset {row.next_offset}. Put the table back, or delete that row "
                "to write it again from the beginning of the topic"
            )
        return row.next_offset, row.open_update

    def _check_columns(self, connection: Connection) -> None:
        look, table = inspect(connection), self._table
        try:
            there = {column["name"] for column in look.get_columns(table.name, table.schema)}
        except NoSuchTableError:
            there = set()
        lacking = [column.name for column in table.columns if column.name not in there]
        if lacking:
            raise ConfigError(
                f"{name_of(self._place)} has no column {', '.join(map(repr, lacking))}. Add it, or "
                "name another table"
            )
        wanted = {column.name for column in table.primary_key}
        known = [look.get_pk_constraint(table.name, table.schema)["constrained_columns"]]
        known += [
            one["column_names"] for one in look.get_unique_constraints(table.name, table.schema)
        ]
        if wanted not in map(set, known):
            raise ConfigError(
                f"{name_of(self._place)} has no primary key ({', '.join(sorted(wanted))}). Add "
                "it, or name another table"
            )

    def _position(self, connection: Connection) -> Any:
        mine = self._positions.c.table_name == self._place.table
        return connection.execute(select(self._positions).where(mine)).one_or_none()

    def _is_mine(self) -> dict[str, str]:
        return {
            "table_name": self._place.table,
            "topic": self._topic,
            "topic_id": self._topic_id,
        }

    def _changes(self, records: Sequence[Taken]) -> tuple[list[Change], list[Rejected], str]:
        changes, bad = [], []
        blocks = UpdateBlocks(self._window, self._open_update)
        append = self._place.mode == "append"
        for record, found in self._read(records):
            if isinstance(found, Rejected):
                bad.append(found)
                continue
            if not append and blocks.is_old_row(found):
                continue
            try:
                changes.append(self._change(record, found, append=append))
            except BadRecord as error:
                bad.append(rejected(record, error.reason))
        return changes, bad, blocks.open

    def _change(self, record: Taken, event: Event, *, append: bool) -> Change:
        row = self._row(event)
        if append:
            own = {OFFSET: record.offset, OPCODE: event.opcode, FLAGS: event.flags}
            return Change(record, False, own | row)
        return Change(record, event.opcode in _DELETES, row)

    def _write_each(
        self, offset: int, open_update: str, bad: list[Rejected], changes: list[Change]
    ) -> None:
        try:
            self._write(offset, open_update, bad, lambda to: self._apply_each(to, changes, bad))
        except SQLAlchemyError as error:  # of no row: of the position, or of the commit
            raise OSError(errno.EIO, shortly(error)) from None

    def _write(
        self,
        offset: int,
        open_update: str,
        bad: list[Rejected],
        apply: Callable[[Connection], None],
    ) -> None:
        table = self._positions
        with transaction(self._engine) as connection:
            step = (
                update(table)
                .where(*[table.c[name] == value for name, value in self._is_mine().items()])
                .where(table.c.next_offset == self.offset)
                .values(next_offset=offset, open_update=open_update)
            )
            if connection.execute(step).rowcount != 1:
                self._check_done(connection, offset)
                return
            apply(connection)
            if bad:
                connection.execute(self._put_aside, [self._set_aside(one) for one in bad])

    def _check_done(self, connection: Connection, offset: int) -> None:
        """Find the commit done whose answer did not come."""
        row = self._position(connection)
        if row is None or (row.topic_id, row.next_offset) != (self._topic_id, offset):
            said = "no position" if row is None else f"offset {row.next_offset}"
            raise ConfigError(
                f"{name_of(self._place)} was written up to offset {self.offset} by this adapter, "
                f"but {self._positions.fullname} has {said} for it: is another adapter at work? "
                "Give each one its own table"
            )

    def _apply_all(self, connection: Connection, changes: list[Change]) -> None:
        if self._place.mode == "upsert":
            # What a key went through does not matter, only what it has in the end.
            last = {tuple(one.row[key] for key in self._keys): one for one in changes}
            changes = list(last.values())
        self._apply(connection, changes)

    def _apply_each(
        self, connection: Connection, changes: list[Change], bad: list[Rejected]
    ) -> None:
        for change in changes:
            try:
                with connection.begin_nested():
                    self._apply(connection, [change])
            except SQLAlchemyError as error:
                if not is_of_a_row(error):
                    raise
                bad.append(rejected(change.record, shortly(error)))
            self._moved()

    def _apply(self, connection: Connection, changes: list[Change]) -> None:
        deletes = [change.row for change in changes if change.deletes]
        rows = [change.row for change in changes if not change.deletes]
        if deletes:
            self._statements.delete(connection, deletes)
        if rows:
            self._statements.write(connection, rows)

    def _set_aside(self, found: Rejected) -> Row:
        return {
            "table_name": self._place.table,
            "record_offset": found.offset,
            "reason": found.reason.replace("\0", "\ufffd"),
            "record": found.text.replace("\0", "\ufffd"),
        }


def _positions(meta: MetaData) -> Table:
    return Table(
        "espha_positions",
        meta,
        Column("table_name", Text, primary_key=True),
        Column("topic", Text, nullable=False),
        Column("topic_id", Text, nullable=False),
        Column("next_offset", BigInteger, nullable=False),
        # An update's old row comes behind it, perhaps in the next transaction.
        Column("open_update", Text, nullable=False),
    )


def _rejects(meta: MetaData) -> Table:
    return Table(
        "espha_rejected",
        meta,
        Column("table_name", Text, primary_key=True),
        Column("record_offset", BigInteger, primary_key=True, autoincrement=False),
        Column("reason", Text, nullable=False),
        Column("record", Text, nullable=False),
    )

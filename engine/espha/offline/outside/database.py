"""Connectors of class db, by SQLAlchemy."""

import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final

from espha.model import Window
from espha.model.events import BadRecord, Event, Value
from espha.model.updates import UpdateBlocks
from espha.offline.arrivals import Arrival
from espha.offline.outside.common import NotReached
from espha.offline.places import Places
from espha.records.layout import Layout
from espha.records.text import event_reader

if TYPE_CHECKING:
    from sqlalchemy import Engine

_LACKING: Final = "it needs the package SQLAlchemy: pip install espha[connectors]"


def connected(properties: Mapping[str, str], places: Places) -> "Engine":
    """Connect to the database that property connectstring names.

    A connectstring is an address of SQLAlchemy (`sqlite:///file.db`, `postgresql://…`), or one of
    ODBC (`DSN=…;uid=…;pwd=…`), which needs pyodbc and the DSN here.

    Raises:
        NotReached: it cannot be reached; the text has no password.
    """
    try:
        import sqlalchemy
    except ImportError:
        raise NotReached(_LACKING) from None
    text = (properties.get("connectstring") or properties.get("connectionstring") or "").strip()
    if not text:
        raise NotReached("property 'connectstring' is missing: the database")
    shown = "the database"
    try:
        if "://" not in text:
            url = sqlalchemy.URL.create("mssql+pyodbc", query={"odbc_connect": text})
            shown = text.partition(";")[0]
        else:
            url = sqlalchemy.make_url(text)
            shown = url.render_as_string(hide_password=True)
        if url.get_backend_name() == "sqlite" and url.database:
            url = url.set(database=str(places.source(url.database).path))
        engine = sqlalchemy.create_engine(url)
        engine.connect().close()
    except ImportError as error:
        raise NotReached(f"{shown} needs the package {error.name}") from None
    except (sqlalchemy.exc.SQLAlchemyError, sqlite3.Error, ValueError) as error:
        raise NotReached(f"{shown} could not be reached: {_shortly(error)}") from None
    return engine


def selected(
    name: str, window: Window, properties: Mapping[str, str], places: Places
) -> Iterator[Arrival]:
    """Return the rows that property selectstatement selects, as events.

    Columns belong to fields by their names, or in their order where the names differ.

    Raises:
        NotReached: the database cannot be reached, or refuses the statement.
    """
    engine = connected(properties, places)
    from sqlalchemy import text
    from sqlalchemy.exc import SQLAlchemyError

    statement = properties.get("selectstatement", "").strip()
    if not statement:
        raise NotReached("property 'selectstatement' is missing")
    upsert = properties.get("publishwithupsert", "").strip().lower() == "true"
    read = event_reader(window, Layout(format="json", upsert=upsert))
    try:
        connection = engine.connect()
        result = connection.execution_options(stream_results=True).execute(text(statement))
    except SQLAlchemyError as error:
        raise NotReached(_shortly(error)) from None
    by_name = {column.lower(): at for at, column in enumerate(result.keys())}
    fields = [field.name for field in window.fields]
    named = any(field.lower() in by_name for field in fields)
    places_of = {
        field: by_name.get(field.lower()) if named else at for at, field in enumerate(fields)
    }

    def arrivals() -> Iterator[Arrival]:
        with closing(connection):
            try:
                for number, row in enumerate(result, 1):
                    content = {
                        field: _plain(row[at])
                        for field, at in places_of.items()
                        if at is not None and at < len(row)
                    }
                    try:
                        yield Arrival(window.path, name, number, read(content))
                    except BadRecord as refusal:
                        yield Arrival(window.path, name, number, None, refusal.reason)
            except SQLAlchemyError as error:
                raise OSError(_shortly(error)) from None

    return arrivals()


def _plain(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.isoformat(" ")
    if isinstance(value, date):
        return value.isoformat()
    return float(value) if isinstance(value, Decimal) else value


class TableSink:
    """Writes what leaves a window into a table; see `espha.offline.sinks.Sink`.

    Inserts and upserts replace the row of their key; deletes remove it.
    """

    def __init__(
        self, name: str, window: Window, properties: Mapping[str, str], places: Places
    ) -> None:
        """Connect, and make the table if it is not there.

        Raises:
            NotReached: the database cannot be reached, or has no such table.
        """
        self._engine = connected(properties, places)
        import sqlalchemy

        table = properties.get("desttablename", "").strip()
        if not table:
            raise NotReached("property 'desttablename' is missing: the table")
        self.name, self.window, self.goal = name, window.path, f"table {table}"
        self.written = 0
        self._fields = window.fields
        self._blocks = UpdateBlocks(window)
        columns = [
            sqlalchemy.Column(field.name, _column_type(field.type), primary_key=field.key)
            for field in window.fields
        ]
        self._table = sqlalchemy.Table(table, sqlalchemy.MetaData(), *columns)
        try:
            self._table.create(self._engine, checkfirst=True)
        except sqlalchemy.exc.SQLAlchemyError as error:
            raise NotReached(_shortly(error)) from None

    def write(self, events: Iterable[Event]) -> None:
        """Write events, in order, in one transaction."""
        from sqlalchemy.exc import SQLAlchemyError

        try:
            with self._engine.begin() as connection:
                for event in events:
                    if self._blocks.is_old_row(event):
                        continue
                    connection.execute(self._table.delete().where(*self._is(event)))
                    if event.opcode not in {"D", "SD"}:
                        connection.execute(self._table.insert().values(self._row(event)))
                    self.written += 1
        except SQLAlchemyError as error:
            raise OSError(_shortly(error)) from None

    def _is(self, event: Event) -> list[Any]:
        row = self._row(event)
        return [self._table.c[field.name] == row[field.name] for field in self._fields if field.key]

    def _row(self, event: Event) -> dict[str, Any]:
        return {
            field.name: _to_column(field.type, value)
            for field, value in zip(self._fields, event.values, strict=True)
        }

    def flush(self) -> None:
        """Every write is a transaction."""

    def close(self) -> None:
        """Let go of the database."""
        self._engine.dispose()


def _column_type(type_: str) -> Any:
    from sqlalchemy import BigInteger, DateTime, Float, Integer, LargeBinary, Text

    kinds: dict[str, Any] = {
        "int32": Integer, "int64": BigInteger, "double": Float, "money": Float,
        "date": DateTime, "stamp": DateTime, "blob": LargeBinary,
    }  # fmt: skip
    return kinds.get(type_, Text)


def _to_column(type_: str, value: Value) -> Any:
    if isinstance(value, int) and type_ in {"date", "stamp"}:
        seconds = value if type_ == "date" else value / 1_000_000
        return datetime.fromtimestamp(seconds, UTC).replace(tzinfo=None)
    return str(list(value)) if isinstance(value, tuple) else value


def _shortly(error: Exception) -> str:
    """Return the database's own words, without the statement and its values."""
    own = getattr(error, "orig", None) or error
    return str(own).partition("\n")[0][:200]

"""How many rows at once get into a table and out of it, in the words of its database."""

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from sqlalchemy import (
    Column,
    Connection,
    Dialect,
    Select,
    Table,
    bindparam,
    delete,
    func,
    insert,
    select,
    tuple_,
)
from sqlalchemy.dialects import postgresql, sqlite

from espha.adapters.table_output.columns import Row


class Statements(Protocol):
    """Changes of one table."""

    def write(self, connection: Connection, rows: Sequence[Row]) -> None:
        """Insert rows; where there are keys, in the place of those with the same key."""
        ...

    def delete(self, connection: Connection, rows: Sequence[Row]) -> None:
        """Delete what has the keys of these rows."""
        ...


def statements(dialect: Dialect, table: Table, keys: Sequence[str]) -> Statements:
    """Return the changes of a table.

    Args:
        dialect: of the database.
        table: which one.
        keys: columns by which rows take the place of others; none: each row is a new one.
    """
    if dialect.name == "postgresql":
        return _InArrays(table, keys)
    return _RowByRow(table, keys)


class _RowByRow:
    """A statement that runs once for each row."""

    def __init__(self, table: Table, keys: Sequence[str]) -> None:
        self._keys = keys
        self._insert = _in_the_place(sqlite.insert(table), table, keys) if keys else insert(table)
        self._delete = delete(table).where(
            *[table.c[key] == bindparam(f"is_{key}") for key in keys]
        )

    def write(self, connection: Connection, rows: Sequence[Row]) -> None:
        connection.execute(self._insert, list(rows))

    def delete(self, connection: Connection, rows: Sequence[Row]) -> None:
        keys = [{f"is_{key}": row[key] for key in self._keys} for row in rows]
        connection.execute(self._delete, keys)


class _InArrays:
    """A statement that runs once for all rows, with an array for each column."""

    def __init__(self, table: Table, keys: Sequence[str]) -> None:
        every, key_columns = list(table.columns), [table.c[key] for key in keys]
        made = postgresql.insert(table).from_select([one.name for one in every], _unnested(every))
        self._insert = _in_the_place(made, table, keys) if keys else made
        self._delete = delete(table).where(tuple_(*key_columns).in_(_unnested(key_columns)))
        self._whole, self._key = _arrays(every), _arrays(key_columns)

    def write(self, connection: Connection, rows: Sequence[Row]) -> None:
        connection.execute(self._insert, self._whole(rows))

    def delete(self, connection: Connection, rows: Sequence[Row]) -> None:
        connection.execute(self._delete, self._key(rows))


def _unnested(columns: Sequence[Column[Any]]) -> Select[Any]:
    """Return the rows of arrays that are as long as each other."""
    return select(
        *[
            func.unnest(bindparam(f"all_{place}", type_=postgresql.ARRAY(column.type)))
            for place, column in enumerate(columns)
        ]
    )


def _arrays(columns: Sequence[Column[Any]]) -> Callable[[Sequence[Row]], dict[str, list[Any]]]:
    names = [column.name for column in columns]
    return lambda rows: {
        f"all_{place}": [row[name] for row in rows] for place, name in enumerate(names)
    }


def _in_the_place(statement: Any, table: Table, keys: Sequence[str]) -> Any:
    """Let rows take the place of those that have their key."""
    others = {
        column.name: statement.excluded[column.name]
        for column in table.columns
        if column.name not in keys
    }
    if not others:
        return statement.on_conflict_do_nothing(index_elements=keys)
    return statement.on_conflict_do_update(index_elements=keys, set_=others)

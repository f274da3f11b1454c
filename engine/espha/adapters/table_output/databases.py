"""Databases that hold rows and position in one transaction, and what their errors mean."""

import errno
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final
from urllib.parse import quote

from sqlalchemy import Connection, Engine, NullPool, create_engine, event, make_url
from sqlalchemy.exc import DataError, DBAPIError, IntegrityError, SQLAlchemyError, StatementError

from espha.adapters.table_output.spec import OutputTable

_POSTGRESQL: Final[dict[str, Any]] = {
    "application_name": "espha",
    "connect_timeout": 10,
    # A server that is gone without a word is noticed within half a minute, from both ends: its
    # half-open transaction holds the lock on the position.
    "keepalives_idle": 5,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 30_000,
    "options": "-c synchronous_commit=on -c lock_timeout=10s -c statement_timeout=60s "
    "-c idle_in_transaction_session_timeout=60s -c timezone=UTC",
}

_OF_A_ROW: Final = {"54000", "21000"}
"""States of SQL for which the driver has no class of its own: the row, or its key, is too large;
rows that are one row to the database, such as keys that its column rounds."""


def name_of(place: OutputTable) -> str:
    """Return database and table, as a user knows them; a password is not part of it."""
    return f"table {place.table} of {place.path or place.url}"


def engine_for(place: OutputTable) -> Engine:
    """Return what connects to the database; it does so later.

    Raises:
        OSError: the database file cannot be made.
    """
    if place.url is not None:
        url = make_url(place.url).set(drivername="postgresql+psycopg")
        return create_engine(url, pool_size=1, max_overflow=0, connect_args=_POSTGRESQL)
    assert place.path is not None  # noqa: S101 - one of the two is given
    place.path.touch()
    # Only here is it made: whoever finds it gone later is not to write into a new one.
    address = f"file:{quote(str(place.path))}?mode=rw"

    def connect() -> sqlite3.Connection:
        connection = sqlite3.connect(address, uri=True, timeout=5, isolation_level=None)
        connection.execute("PRAGMA synchronous = FULL")
        return connection

    # A connection for each transaction: one that stays open writes on into a file that was
    # moved away or deleted.
    engine = create_engine("sqlite://", creator=connect, poolclass=NullPool)

    @event.listens_for(engine, "begin")
    def begin(connection: Connection) -> None:
        connection.exec_driver_sql("BEGIN IMMEDIATE")

    return engine


def is_of_a_row(error: SQLAlchemyError) -> bool:
    """Say whether a row is at fault, and not the database."""
    if isinstance(error, DataError | IntegrityError):
        return True
    if isinstance(error, DBAPIError):
        return getattr(error.orig, "sqlstate", "") in _OF_A_ROW
    return isinstance(error, StatementError)


@contextmanager
def transaction(engine: Engine) -> Iterator[Connection]:
    """Commit what is done inside, or none of it.

    Raises:
        OSError: the database is away, or refuses; whether it has committed is not known.
        SQLAlchemyError: a row is at fault (`is_of_a_row`); nothing was done.
    """
    try:
        with engine.begin() as connection:
            yield connection
    except SQLAlchemyError as error:
        if is_of_a_row(error):
            raise
        engine.dispose()
        raise OSError(errno.EIO, shortly(error)) from None
    except sqlite3.Error as error:
        raise OSError(errno.EIO, shortly(error)) from None


def shortly(error: Exception) -> str:
    """Return the database's own words, without the statement and its values."""
    own = getattr(error, "orig", None) or error
    return str(own).strip().partition("\n")[0][:300] or type(own).__name__

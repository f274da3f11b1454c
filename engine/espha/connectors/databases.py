"""Properties of connectors of databases."""

import re
from typing import Final
from urllib.parse import urlsplit

_SERVERS: Final = frozenset({"postgresql", "postgres"})
_SQLITE: Final = re.compile(r"sqlite(?:\+[a-z0-9]+)?:///(?P<path>[^?]+)")


def database_of(connect: str) -> str:
    """Return the database that a connectstring says: an address of PostgreSQL, a file of SQLite.

    A connectstring is an address of SQLAlchemy (`postgresql://…`, `sqlite:///file`), or one of ODBC
    (`Driver=…;Server=…;Database=…`). A password is not part of what is returned. Empty where it is
    another database, or only names a source of data that is configured elsewhere.
    """
    text = connect.strip()
    if "://" not in text:
        return _of_odbc(text)
    file = _SQLITE.fullmatch(text)
    if file is not None:
        return file["path"]
    return _of_address(text)


def _of_address(text: str) -> str:
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError:
        return ""
    name = parts.path.removeprefix("/")
    if parts.scheme.partition("+")[0].lower() not in _SERVERS or not parts.hostname or not name:
        return ""
    return _address(parts.username or "", parts.hostname, str(port or ""), name)


def _of_odbc(text: str) -> str:
    pairs = (pair.partition("=") for pair in text.split(";"))
    told = {name.strip().lower(): value.strip().strip("{}") for name, _, value in pairs}
    driver = told.get("driver", "postgres").lower()
    host = told.get("server") or told.get("servername") or told.get("host") or ""
    name = told.get("database") or told.get("db") or ""
    if "sqlite" in driver:
        return name
    if not host or not name or "postgres" not in driver:
        return ""
    return _address(told.get("uid", ""), host, told.get("port", ""), name)


def _address(user: str, host: str, port: str, name: str) -> str:
    return f"postgresql://{f'{user}@' if user else ''}{host}{f':{port}' if port else ''}/{name}"

"""A schema registry that speaks Confluent's REST API."""

import base64
import errno
import json
import struct
from typing import Any, Final, NamedTuple
from urllib.parse import quote

import urllib3

from espha.adapters.answers import asker, read_body
from espha.adapters.config import ConfigError
from espha.adapters.formats.spec import Registry
from espha.adapters.secrets import secret

USER_INFO: Final = "SCHEMA_REGISTRY_BASIC_AUTH_USER_INFO"
"""The secret with `user:password`."""

_CONNECT_S: Final = 3.0
_ANSWER_S: Final = 10.0
_MOST: Final = 4 << 20
_TYPE: Final = "application/vnd.schemaregistry.v1+json"
_MAGIC: Final = b"\0"
_HEAD: Final = 5
_MOST_REFERENCES: Final = 100


class NotGivenError(ConfigError):
    """A schema, or what it needs, cannot be had now: that says nothing of it, and may pass."""


class Reference(NamedTuple):
    """Another schema that a schema refers to.

    Attributes:
        name: what it is called there; of Protobuf the file that is imported.
        subject: its subject in the registry.
        version: its version there.
    """

    name: str
    subject: str
    version: int


class Registered(NamedTuple):
    """A schema of the registry.

    Attributes:
        id: its number there.
        text: the schema.
        kind: `AVRO`, `PROTOBUF` or `JSON`.
        references: the schemas that it refers to.
    """

    id: int
    text: str
    kind: str
    references: tuple[Reference, ...] = ()

    def part(self, kind: str) -> str:
        """Return the text of a schema of a kind, which may refer to others.

        Raises:
            ConfigError: it is of another kind.
        """
        if self.kind != kind:
            raise ConfigError(f"schema {self.id} of the registry is {self.kind}, not {kind}")
        return self.text

    def of(self, kind: str) -> str:
        """Return the text of a schema of a kind.

        Raises:
            ConfigError: it is of another kind, or not whole.
        """
        self.part(kind)
        if self.references:
            raise ConfigError(
                f"schema {self.id} of the registry refers to others, which is not supported; "
                "register it as a whole"
            )
        return self.text


def framed(identity: int, payload: bytes) -> bytes:
    """Return a payload with the number of its schema before it."""
    return _MAGIC + struct.pack(">I", identity) + payload


def unframed(payload: bytes) -> tuple[int, bytes] | None:
    """Return the number of its schema, and what stands behind it; None: there is no number."""
    if len(payload) < _HEAD or payload[:1] != _MAGIC:
        return None
    return struct.unpack(">I", payload[1:_HEAD])[0], payload[_HEAD:]


class SchemaRegistry:
    """Asks a registry.

    All methods raise OSError where it is away or has trouble (the same call may do better later),
    and ConfigError where it refuses.
    """

    def __init__(self, given: Registry) -> None:
        """Ask nothing yet."""
        self.subject, self._url = given.subject, given.url.rstrip("/")
        timeout = urllib3.Timeout(connect=_CONNECT_S, read=_ANSWER_S)
        self._pool = asker(timeout=timeout, retries=False)

    def latest(self) -> Registered | None:
        """Return the subject's newest schema; None: it has none."""
        content = self._ask("GET", f"/subjects/{quote(self.subject, safe='')}/versions/latest")
        return None if content is None else self._registered(content, content.get("id"))

    def with_id(self, identity: int) -> Registered | None:
        """Return the schema with a number; None: there is none."""
        content = self._ask("GET", f"/schemas/ids/{identity}")
        return None if content is None else self._registered(content, identity)

    def referred(self, schema: Registered, kind: str) -> dict[str, str]:
        """Return the texts of all schemas that a schema refers to, by their names.

        Raises:
            NotGivenError: one of them is not there.
            ConfigError: one of them is of another kind, or they are too many.
        """
        found: dict[str, str] = {}
        waiting = list(schema.references)
        while waiting:
            one = waiting.pop()
            if one.name in found:
                continue
            there = self.version(one.subject, one.version)
            if there is None:
                raise NotGivenError(
                    f"the schema registry has no version {one.version} of subject "
                    f"{one.subject!r}, which schema {schema.id} refers to"
                )
            found[one.name] = there.part(kind)
            waiting += there.references
            if len(found) > _MOST_REFERENCES or sum(map(len, found.values())) > _MOST:
                raise ConfigError(f"schema {schema.id} of the registry refers to too many others")
        return found

    def version(self, subject: str, version: int) -> Registered | None:
        """Return a version of any subject; None: there is none."""
        content = self._ask("GET", f"/subjects/{quote(subject, safe='')}/versions/{version}")
        return None if content is None else self._registered(content, content.get("id"))

    def register(self, text: str, kind: str) -> int:
        """Have the subject know a schema, and return its number.

        Raises:
            ConfigError: the registry refuses it, mostly since it does not fit an earlier one.
        """
        path = f"/subjects/{quote(self.subject, safe='')}/versions"
        body = {"schema": text, **({} if kind == "AVRO" else {"schemaType": kind})}
        content = self._ask("POST", path, body)
        if content is None or not isinstance(content.get("id"), int):
            raise self._strange(path)
        return int(content["id"])

    def _registered(self, content: dict[str, Any], identity: object) -> Registered:
        text, kind = content.get("schema"), content.get("schemaType") or "AVRO"
        if not isinstance(text, str) or not isinstance(identity, int):
            raise self._strange(f"schema of subject {self.subject!r}")
        try:
            references = tuple(
                Reference(str(one["name"]), str(one.get("subject")), int(one.get("version", 0)))
                for one in content.get("references") or ()
            )
        except (AttributeError, KeyError, TypeError, ValueError):
            raise self._strange(f"references of schema {identity}") from None
        return Registered(identity, text, str(kind), references)

    def _ask(
        self, method: str, path: str, body: dict[str, str] | None = None
    ) -> dict[str, Any] | None:
        """Return what it answers; None: it has no such thing."""
        headers = {"Accept": _TYPE}
        user = secret(USER_INFO)
        if user:
            # As Confluent's clients do; urllib3 can only send what ISO 8859-1 has.
            told = base64.b64encode(user.encode(errors="surrogateescape"))
            headers["Authorization"] = f"Basic {told.decode()}"
        if body is not None:
            headers["Content-Type"] = _TYPE
        try:
            with self._pool.request(
                method,
                self._url + path,
                body=None if body is None else json.dumps(body),
                headers=headers,
                redirect=False,
                preload_content=False,
            ) as answer:
                status, data = answer.status, self._body(answer, path)
        except urllib3.exceptions.ReadTimeoutError:
            raise self._away("the answer comes too slowly") from None
        except urllib3.exceptions.HTTPError as error:
            raise self._away(_cause(error)) from None
        return self._content(status, data, path)

    def _body(self, answer: urllib3.BaseHTTPResponse, path: str) -> bytes:
        data = read_body(answer, _MOST)
        if data is None:
            raise self._strange(f"more than {_MOST} bytes at {path}")
        return data

    def _content(self, status: int, data: bytes, path: str) -> dict[str, Any] | None:
        try:
            content = json.loads(data)
        except ValueError:
            content = None
        said = str(content.get("message", "")) if isinstance(content, dict) else ""
        if status == 404 and isinstance(content, dict) and "error_code" in content:
            return None
        if status >= 500 or status == 429:
            raise self._away(f"it answers {status} {said}".rstrip())
        if status != 200:
            raise NotGivenError(f"schema registry {self._url} answers {status} to {path}: {said}")
        if not isinstance(content, dict):
            raise self._strange(path)
        return content

    def _away(self, why: str) -> OSError:
        sentence = f"schema registry {self._url} is away: {why}"
        return OSError(errno.EHOSTUNREACH, sentence)

    def _strange(self, what: str) -> NotGivenError:
        return NotGivenError(f"schema registry {self._url}: this is no schema registry ({what})")


def _cause(error: Exception) -> str:
    # What urllib3 says begins with the address of an object.
    reason = str(getattr(error, "reason", None) or error)
    return reason.rpartition(": ")[2][:200] or type(error).__name__

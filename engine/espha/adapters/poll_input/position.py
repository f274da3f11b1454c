"""Which contents were published last."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, NamedTuple

from espha.protocol.status import InputProgress

_LONGEST: Final = 300


class Seen(NamedTuple):
    """The content of an address that was seen last.

    Attributes:
        etag: what the server calls it; empty: it has no name.
        modified: when it was changed, in the server's words; empty: nobody says.
        digest: of its bytes.
    """

    etag: str = ""
    modified: str = ""
    digest: str = ""

    @classmethod
    def of(cls, etag: str, modified: str, content: bytes) -> "Seen":
        """Return what is remembered of a content; names that are too long are forgotten."""
        names = [name if len(name) <= _LONGEST else "" for name in (etag, modified)]
        return cls(names[0], names[1], short(content))


@dataclass(frozen=True, slots=True)
class Position:
    """How far an adapter is.

    Attributes:
        adapter: its name.
        contents: how many were published.
        rows: of all of them.
        seen: for each address (its digest) what was seen last.
    """

    adapter: str
    contents: int = 0
    rows: int = 0
    seen: Mapping[str, Seen] = field(default_factory=dict)

    @classmethod
    def of(cls, adapter: str, found: Mapping[str, Any] | None) -> "Position":
        """Read a position back; None: nothing was published yet."""
        known = found or {}
        seen = {one: Seen(*map(str, what)) for one, what in (known.get("seen") or {}).items()}
        return cls(adapter, int(known.get("contents", 0)), int(known.get("rows", 0)), seen)

    def to_header(self) -> bytes:
        """Return it as an object of JSON."""
        content: dict[str, Any] = {
            "adapter": self.adapter,
            "contents": self.contents,
            "rows": self.rows,
        }
        if self.seen:
            content["seen"] = self.seen
        return json.dumps(content, separators=(",", ":")).encode()

    def progress(self, rows: int) -> InputProgress:
        """Return what the status shows of it; `rows`: published in this life."""
        text = f"{self.contents} contents, {self.rows} rows"
        return InputProgress(rows=rows, position=text, line=self.rows)

    def with_seen(self, address: str, seen: Seen) -> "Position":
        """Return it with what was seen at an address."""
        return replace(self, seen={**self.seen, address: seen})

    def after(self, rows: int) -> "Position":
        """Return the one behind so many rows of another content."""
        return replace(self, contents=self.contents + 1, rows=self.rows + rows)

    def bare(self) -> "Position":
        """Return it without what only the last row of a transaction has to know."""
        return replace(self, seen={})


def short(content: bytes) -> str:
    """Return what tells a content from others."""
    return hashlib.blake2b(content, digest_size=16).hexdigest()

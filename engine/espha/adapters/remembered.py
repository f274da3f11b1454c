"""Positions of sources whose senders give ids: what is sent again under one is known by it."""

import base64
import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

from espha.protocol.status import InputProgress


@dataclass(frozen=True, slots=True)
class Position:
    """How far an adapter is.

    Attributes:
        adapter: its name.
        requests: how many requests or messages were published.
        rows: of all of them.
        ids: digests of the last ids, the newest one last.
    """

    called: ClassVar[str] = "requests"
    """What they are, for people."""

    adapter: str
    requests: int = 0
    rows: int = 0
    ids: tuple[str, ...] = ()

    def to_header(self) -> bytes:
        """Return it as an object of JSON."""
        content = {"adapter": self.adapter, "requests": self.requests, "rows": self.rows}
        if self.ids:
            content["ids"] = " ".join(self.ids)
        return json.dumps(content, separators=(",", ":")).encode()

    @classmethod
    def of(cls, adapter: str, found: Mapping[str, Any] | None) -> Self:
        """Read a position back; None: nothing was published yet."""
        known = found or {}
        return cls(
            adapter,
            int(known.get("requests", 0)),
            int(known.get("rows", 0)),
            tuple(str(known.get("ids", "")).split()),
        )

    def progress(self, rows: int) -> InputProgress:
        """Return what the status shows of it; `rows`: published in this life."""
        text = f"{self.requests} {self.called}, {self.rows} rows"
        return InputProgress(rows=rows, position=text, line=self.rows)

    def behind(self, rows: Sequence[bytes], known: str, most: int) -> tuple[Sequence[bytes], Self]:
        """Return which of the rows that came under an id are new, and the position behind them.

        Args:
            rows: what came.
            known: the digest of its id; empty: it has none.
            most: so many ids are remembered.
        """
        if known and known in self.ids:
            return (), self
        ids = (*self.ids, known) if known else self.ids
        kept = ids[-most:] if most else ()
        return rows, replace(self, requests=self.requests + 1, rows=self.rows + len(rows), ids=kept)

    def bare(self) -> Self:
        """Return it without the ids."""
        return replace(self, ids=())


def digest(text: str) -> str:
    """Return what tells an id from others, in 11 characters."""
    whole = hashlib.blake2b(text.encode("utf-8", "surrogateescape"), digest_size=8).digest()
    return base64.urlsafe_b64encode(whole).rstrip(b"=").decode()

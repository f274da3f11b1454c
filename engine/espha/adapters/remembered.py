"""Positions of sources whose senders give ids: what is sent again under one is known by it."""

import base64
import hashlib
import json
from abc import ABC
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self, TypeVar

from espha.adapters.receiving import Parcel, Receiver
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

    def after(self, rows: Sequence[bytes], known: str, most: int) -> tuple[Sequence[bytes], Self]:
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


At = TypeVar("At", bound=Position)


class RememberingReceiver(Receiver[str, At], ABC):
    """A receiver of what has ids; the note of a parcel is the digest of its id, or empty."""

    def __init__(self, name: str, position: At, host: str, ids: int) -> None:
        """Begin behind a position; `ids`: so many are remembered. See also `Receiver`."""
        super().__init__(name, position, host)
        self._ids = ids

    def accept(self, parcel: Parcel[str], position: At) -> tuple[Sequence[bytes], At]:
        """See `Receiver`: what comes again under an id that is known is not published again."""
        return position.after(parcel.rows, parcel.note, self._ids)

    def at(self, position: Mapping[str, Any]) -> At:
        """See `Receiver`."""
        return self._position.of(self._position.adapter, position)

    def bare(self, position: At) -> At:
        """See `Receiver`."""
        return position.bare()


def digest(text: str) -> str:
    """Return what tells an id from others, in 11 characters."""
    whole = hashlib.blake2b(text.encode("utf-8", "surrogateescape"), digest_size=8).digest()
    return base64.urlsafe_b64encode(whole).rstrip(b"=").decode()

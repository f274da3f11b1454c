"""What a translation of properties finds: what is different, and what cannot be done."""

from collections.abc import Mapping, Set
from dataclasses import dataclass, field
from typing import Final

from pydantic import ValidationError

CONNECTION: Final = frozenset({"type", "url", "transport", "transportconfigfile", "active"})
"""Properties that say where an adapter belongs, whatever it is one of."""
WITHOUT_EFFECT: Final = {
    "blocksize": "transactions are made by time and size",
    "transactional": "transactions are made by time and size",
    "prebuffer": "rows are published as they are read",
    "quiesceproject": "a project goes on",
    "ignorecsvparseerrors": "rows that cannot be read become dead letters, and the others go on",
    "loglevel": "logs have one level",
    "logconfigfile": "logs are lines of JSON",
    "configfilesection": "there is no such file",
    "unbufferedoutputstreams": "what is written is on the disk",
    "commitrows": "transactions are made by time and size",
    "commitsecs": "transactions are made by time and size",
    "maxcolbinding": "columns have any width",
    "ignoresqlerrors": "a row that the database refuses stops the adapter, so none is lost",
    "pwdencrypted": "the password is given in PGPASSWORD",
    "cashostport": "rows go to a database, not to CAS",
}
"""Properties that change nothing here, and why."""
DATES: Final = (
    "dates are written as on the topic: say it in property dateformat of the window's Kafka "
    "connector"
)
SNAPSHOT: Final = "everything that the topic holds is written, from its first record"


@dataclass
class Findings:
    """Notes and problems, each one once."""

    notes: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)

    def note(self, text: str) -> None:
        """Say what is different, or has no effect."""
        if text not in self.notes:
            self.notes.append(text)

    def refuse(self, text: str) -> None:
        """Say what is not understood, or cannot be done."""
        if text not in self.problems:
            self.problems.append(text)


def check_names(values: Mapping[str, str], known: Set[str], found: Findings) -> None:
    """Note properties without effect, and refuse those that are not known."""
    for one in values:
        if one in WITHOUT_EFFECT:
            found.note(f"{one} has no effect: {WITHOUT_EFFECT[one]}")
        elif one not in known:
            found.refuse(f"property {one[:60]!r} is not known")


def first(error: ValueError) -> str:
    """Return the first thing that is wrong, as a sentence."""
    if isinstance(error, ValidationError):
        problem = error.errors()[0]
        return f"{'.'.join(str(part) for part in problem['loc'])}: {problem['msg']}"
    return str(error)

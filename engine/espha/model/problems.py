"""What is wrong with a model, and where."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches

from lxml import etree

MAX_TEXT = 400
"""Longest text in a message, in characters."""


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing in a model that the engine refuses (or, as a warning, does not use).

    Attributes:
        line: line in the XML, counted from 1.
        element: tag of the element.
        name: its `name` attribute; empty when it has none.
        reason: a sentence for the author of the model.
    """

    line: int
    element: str
    name: str
    reason: str

    def __str__(self) -> str:
        name = f' name="{self.name}"' if self.name else ""
        return f"line {self.line}: <{self.element}{name}>: {self.reason}"


class ModelError(ValueError):
    """A model was refused; `problems` holds every reason, in the order of the lines."""

    def __init__(self, problems: Sequence[Problem], source: str = "model.xml") -> None:
        super().__init__(problems, source)
        self.problems = list(problems)
        self.source = source

    def __str__(self) -> str:
        return "\n".join(f"{self.source}: {problem}" for problem in self.problems)


@dataclass
class Findings:
    """Collects problems and warnings, so that an author sees all of them at once."""

    problems: list[Problem] = field(default_factory=list)
    warnings: list[Problem] = field(default_factory=list)

    def refuse(self, element: etree._Element, reason: str) -> None:
        """Note that `element` cannot be run, because of `reason`."""
        self.problems.append(_problem(element, reason))

    def warn(self, element: etree._Element, reason: str) -> None:
        """Note that something about `element` has no effect."""
        self.warnings.append(_problem(element, reason))


def _problem(element: etree._Element, reason: str) -> Problem:
    tag, name, why = str(element.tag), element.get("name", ""), reason
    return Problem(line_of(element), *(_short(text) for text in (tag, name, why)))


def _short(text: str) -> str:
    """Cut what an author would not read: texts from the XML can be as long as the XML."""
    return text if len(text) <= MAX_TEXT else text[: MAX_TEXT - 1] + "…"


def line_of(element: etree._Element) -> int:
    """Return the line of an element, counted from 1."""
    line = element.sourceline
    return line if isinstance(line, int) else 1


def meant(name: str, known: Iterable[str]) -> str:
    """Return `; do you mean …?` where a known name is like this one; else nothing."""
    close = get_close_matches(name[:MAX_TEXT], list(known), n=1)
    return f"; do you mean {close[0]!r}?" if close else ""

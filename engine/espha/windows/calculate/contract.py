"""What an algorithm of calculate windows takes and gives: the form of its declaration."""

from collections.abc import Callable, Mapping
from typing import Final, Literal, NamedTuple

Kind = Literal["count", "number", "text", "blob", "any"]
"""What a value is: a whole number, a number, a text, bytes, or anything."""
Setting = int | float | str | bool
Settings = Mapping[str, Setting]

MAX_WINDOW: Final = 1_000_000
"""Longest window, in events."""
MAX_WALKED: Final = 10_000
"""Longest window of an algorithm that walks over it at each event."""


class Parameter(NamedTuple):
    """A parameter: a truth value, a whole number, a number or a text, as its default is one.

    Attributes:
        default: what holds when it is not given.
        low: smallest number.
        high: largest number.
        choices: the texts that it can be; empty: any.
        note: what it is for, for the documentation.
    """

    default: Setting
    low: float = 0
    high: float = MAX_WINDOW
    choices: tuple[str, ...] = ()
    note: str = ""


class Role(NamedTuple):
    """One of the inputs of an algorithm.

    Attributes:
        kind: what its fields must be; "any": a number or a text, as labels are.
        many: it takes a list of fields, and gives a tuple of values.
        needed: it must be mapped; otherwise its value is null where it is not.
        note: what it is for.
    """

    kind: Kind = "number"
    many: bool = False
    needed: bool = True
    note: str = ""


class Result(NamedTuple):
    """One of the outputs of an algorithm.

    Attributes:
        kind: what it is.
        many: it is a list, for an array, for a part of one, or for a list of fields.
        repeats: the input whose value it is; where that is a key, this is as good a key.
        unique: no other row has the same.
        note: what it is.
    """

    kind: Kind = "number"
    many: bool = False
    repeats: str = ""
    unique: bool = False
    note: str = ""


def _nothing(settings: Settings, counts: Mapping[str, int]) -> str:
    return ""


class Algorithm(NamedTuple):
    """An algorithm's contract.

    Attributes:
        name: as in the XML, where capitals do not matter.
        code: "module:Class" in this package: what computes. Only a running kernel imports it.
        inputs: by name.
        parameters: by name.
        results: by name.
        rows_by: the result that tells the rows of one event apart; empty: there is one row at most.
        check: takes the settings and the number of fields of each input; returns a sentence when
            they do not go together.
        aliases: other names of the algorithm.
    """

    name: str
    code: str
    inputs: Mapping[str, Role]
    parameters: Mapping[str, Parameter]
    results: Mapping[str, Result]
    rows_by: str = ""
    check: Callable[[Settings, Mapping[str, int]], str] = _nothing
    aliases: tuple[str, ...] = ()


def numbers(*names: str) -> dict[str, Result]:
    """Return results that are numbers."""
    return dict.fromkeys(names, Result("number"))


def counts(*names: str) -> dict[str, Result]:
    """Return results that are whole numbers."""
    return dict.fromkeys(names, Result("count"))

"""How functions are described, and what they take.

What a function takes is written with one letter for each argument: `a` any value, `s` a text,
`n` a number, `i` a whole number, `p` a regular expression, `j` a path into JSON, `x` an XPath,
`f` a time format to write, `r` one to read. `?` stands before the arguments that may be missing;
`*` at the end means that the last argument can come more than once.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

from espha.languages.functional.errors import FunctionError
from espha.languages.functional.frame import Frame

Run = Callable[[Frame], Any]

MAX_ARGUMENTS = 200


class Function(NamedTuple):
    """One function of the language.

    Attributes:
        takes: its arguments, see the module.
        run: what computes it.
        nulls: it is called with null arguments too; otherwise null in is null out.
        framed: `run` gets the frame first.
        lazy: `run` gets the arguments as things to run, and returns a `Run`.
    """

    takes: str
    run: Callable[..., Any]
    nulls: bool = False
    framed: bool = False
    lazy: bool = False

    def kinds(self, name: str, count: int) -> str:
        """Return one letter for each of `count` arguments.

        Raises:
            FunctionError: the function does not take so many.
        """
        fixed, _, more = self.takes.partition("?")
        repeated = more.endswith("*") or fixed.endswith("*")
        letters = (fixed + more).rstrip("*")
        low = len(fixed.rstrip("*"))
        high = MAX_ARGUMENTS if repeated else len(letters)
        if not low <= count <= high:
            raise FunctionError(f"{name}() takes {_range(low, high)}, not {count}")
        return letters[:count] + letters[-1:] * (count - len(letters))


def _range(low: int, high: int) -> str:
    if high == MAX_ARGUMENTS:
        return f"{low} arguments or more (at most {high})"
    if low == high:
        return f"{low} argument{'' if low == 1 else 's'}"
    return f"{low} to {high} arguments"

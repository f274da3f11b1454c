"""What a function can know of the event that is being made."""

from collections.abc import Mapping
from typing import Any, Final

from espha.languages.functional.catalog import Function
from espha.languages.functional.frame import Frame
from espha.languages.functional.values import bounded, text


def _outstr(*values: Any) -> str:
    """Return what ESP would print: an engine has no terminal that anybody looks at."""
    return bounded("".join([text(value) or "" for value in values]))


FUNCTIONS: Final[Mapping[str, Function]] = {
    "eventNumber": Function("", lambda frame: frame.number, framed=True),
    "eventCounter": Function("", lambda frame: frame.counter, framed=True),
    "input": Function("", lambda frame: frame.source, framed=True),
    "opcode": Function("", lambda frame: frame.opcode, framed=True),
    "flags": Function("", lambda frame: frame.flags, framed=True),
    "guid": Function("", Frame.guid, framed=True),
    "outstr": Function("?a*", _outstr, nulls=True),
}

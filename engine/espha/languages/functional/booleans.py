"""Conditions and choices."""

from collections.abc import Mapping
from typing import Any, Final

from espha.languages.functional.catalog import Function, Run
from espha.languages.functional.frame import Frame
from espha.languages.functional.values import compare, equal, truth


def _equals(left: Any, right: Any) -> int:
    return int(equal(left, right))


def _in(value: Any, *others: Any) -> int:
    return int(any(equal(value, other) for other in others))


def _order(*wanted: int) -> Function:
    """Return a comparison; with a null it does not hold."""

    def run(left: Any, right: Any) -> int:
        if left is None or right is None:
            return 0
        return int(compare(left, right) in wanted)

    return Function("aa", run, nulls=True)


def _between(value: Any, low: Any, high: Any) -> int:
    if value is None or low is None or high is None:
        return 0
    return int(compare(low, value) <= 0 <= compare(high, value))


def _and(*conditions: Run) -> Run:
    return lambda frame: int(all(truth(condition(frame)) for condition in conditions))


def _or(*conditions: Run) -> Run:
    return lambda frame: int(any(truth(condition(frame)) for condition in conditions))


def _if(condition: Run, then: Run, otherwise: Run = lambda frame: None) -> Run:
    return lambda frame: then(frame) if truth(condition(frame)) else otherwise(frame)


def _if_next(*parts: Run) -> Run:
    """Choose the value behind the first condition that holds; a last part alone is for the rest."""
    pairs = list(zip(parts[::2], parts[1::2], strict=False))
    rest: Run = parts[-1] if len(parts) % 2 else lambda frame: None

    def run(frame: Frame) -> Any:
        for condition, value in pairs:
            if truth(condition(frame)):
                return value(frame)
        return rest(frame)

    return run


def _switch(value: Run, *parts: Run) -> Run:
    """Choose the value behind the first case that equals `value`."""
    cases = list(zip(parts[::2], parts[1::2], strict=False))
    rest: Run = parts[-1] if len(parts) % 2 else lambda frame: None

    def run(frame: Frame) -> Any:
        wanted = value(frame)
        for case, result in cases:
            if equal(case(frame), wanted):
                return result(frame)
        return rest(frame)

    return run


def _if_null(*values: Run) -> Run:
    def run(frame: Frame) -> Any:
        for value in values:
            found = value(frame)
            if found is not None:
                return found
        return None

    return run


_GE, _LE, _NE = _order(0, 1), _order(-1, 0), Function("aa", lambda a, b: 1 - _equals(a, b), True)

FUNCTIONS: Final[Mapping[str, Function]] = {
    "and": Function("a*", _and, lazy=True),
    "or": Function("a*", _or, lazy=True),
    "not": Function("a", lambda value: int(not truth(value)), nulls=True),
    "boolean": Function("a", lambda value: int(truth(value)), nulls=True),
    "true": Function("", lambda: 1),
    "false": Function("", lambda: 0),
    "if": Function("aa?a", _if, lazy=True),
    "ifNext": Function("aa?a*", _if_next, lazy=True),
    "ifNull": Function("aa*", _if_null, lazy=True),
    "switch": Function("aaa?a*", _switch, lazy=True),
    "isNull": Function("a", lambda value: int(value is None), nulls=True),
    "isSet": Function("a", lambda value: int(value is not None), nulls=True),
    "equals": Function("aa", _equals, nulls=True),
    "ne": _NE,
    "neq": _NE,
    "gt": _order(1),
    "ge": _GE,
    "gte": _GE,
    "lt": _order(-1),
    "le": _LE,
    "lte": _LE,
    "in": Function("aa*", _in, nulls=True),
    "between": Function("aaa", _between, nulls=True),
    "compare": Function("aa", compare, nulls=True),
}

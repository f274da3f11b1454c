"""What goes from a script to the engine: rows, values, reasons; and calls of analytic modules."""

import base64
import collections
import datetime
import decimal
import fractions
from collections.abc import Callable, Mapping
from typing import Any

from espha.scripts.process.common import PLAIN, Refused


def module_call(
    function: Callable[..., Any], data: dict[str, Any], context: Mapping[str, Any]
) -> Any:
    """Call a function of an analytic module: its parameters are fields, its results too.

    What is no result stays as it came.
    """
    special = {"_inOpcode": context["opcode"], "_inFlags": context["flags"]}
    code = function.__code__
    known = {**data, **special}
    names = code.co_varnames[: code.co_argcount]
    result = function(**{name: known[name] for name in names if name in known})
    named = output_names(function.__doc__)
    values = result if isinstance(result, tuple) else (result,)
    if len(values) != len(named):
        raise Refused(f"the function returns {len(values)} values, its text names {len(named)}")
    row = dict(zip(named, values, strict=True))
    if "_outOpcode" in row and not row["_outOpcode"]:
        return None
    return {**data, **row, "_opcode": row.get("_outOpcode")}


def output_names(text: str | None) -> list[str]:
    """Return the names after `Output:` in the text of a function."""
    for line in (text or "").splitlines():
        head, found, names = line.strip().partition(":")
        if found and head.strip().lower() == "output":
            return [name for part in names.split(",") if (name := part.strip())]
    return []


def encoded(value: Any) -> Any:
    """Return a blob as base64 text, anything else as it is."""
    return base64.b64encode(value).decode() if type(value) is bytes else value


def taken(value: Any) -> Any:
    """Return what JSON says for a value that it does not know."""
    if isinstance(value, bytes | bytearray):
        return {"b": base64.b64encode(value).decode()}
    if isinstance(value, int | float | str):
        return next(type_(value) for type_ in (int, float, str) if isinstance(value, type_))
    if isinstance(value, decimal.Decimal | fractions.Fraction):
        return float(value)
    if isinstance(value, datetime.datetime) and value.tzinfo is not None:
        value = value.astimezone(datetime.UTC).replace(tzinfo=None)
    if isinstance(value, datetime.date):
        return str(value)
    if isinstance(value, list | tuple | collections.deque):
        parts = [part if type(part) in PLAIN else taken(part) for part in value]
        if all(type(part) in PLAIN for part in parts):
            return parts
    if hasattr(value, "dtype") and hasattr(value, "tolist"):
        plain = value.tolist()
        return plain if type(plain) in PLAIN else taken(plain)
    raise Refused(f"a value is of type {type(value).__name__}; use numbers, texts, bytes or lists")


def reason(error: BaseException) -> str:
    """Return the sentence for what went wrong, with the line of the script."""
    where, trace = "", error.__traceback__
    while trace is not None:
        shown = trace.tb_frame.f_code.co_filename
        if shown.partition(" ")[0] in ("script", "module", "snippet") and "/" not in shown:
            where = f"{shown} line {trace.tb_lineno}: "
        trace = trace.tb_next
    said = str(error) if isinstance(error, Refused) else f"{type(error).__name__}: {error}"
    # Half of a surrogate pair, which JSON can hold, is no text that could be written anywhere.
    return (where + said)[:400].encode(errors="replace").decode()

"""Functional windows: which events leave, field by field."""

from typing import Any

import pytest

from espha.kernel import Kernel
from espha.model import ModelError, read_project
from espha.windows.events import Event
from support.models import source, xml

SECOND = 1_700_000_000
"""2023-11-14 22:13:20 UTC, a Tuesday."""


def window(schema: str, body: str, attributes: str = "") -> str:
    return (
        f'<window-functional name="out" {attributes}><schema-string>{schema}</schema-string>'
        f"{body}</window-functional>"
    )


def context(functions: dict[str, str], before: str = "") -> str:
    body = "".join(
        f'<function name="{name}"><![CDATA[{text}]]></function>' for name, text in functions.items()
    )
    return f"<function-context>{before}<functions>{body}</functions></function-context>"


def kernel(feed: str, schema: str, body: str, attributes: str = "", index: str = "pi_EMPTY") -> Any:
    windows = source(feed) + window(schema, body, attributes)
    project = read_project(xml(windows, '<edge source="in" target="out"/>', index=index))
    return Kernel(project, published=["q/out"])


def publish(running: Kernel, opcode: str, *values: Any, clock: int = SECOND * 1000) -> list[Event]:
    return [event for _, event in running.publish("q/in", Event(opcode, "N", values), clock)]


def one(functions: dict[str, str], feed: str, values: tuple[Any, ...], schema: str) -> Any:
    """Return the values that the functions make of one event, without the key."""
    running = kernel(f"id*:int64,{feed}", f"id*:int64,{schema}", context(functions))
    (event,) = publish(running, "I", 1, *values)
    return event.values[1:]


def test_a_function_sets_the_field_of_its_name() -> None:
    """Others are variables, and what no function sets comes from the input by name."""
    found = one(
        {"half": "quotient($x,2)", "y": "sum($half,1)"},
        "x:double,name:string",
        (10.0, "a"),
        "name:string,y:double,x:double",
    )
    assert found == ("a", 6.0, 10.0)


def test_an_insert_an_update_and_a_delete_keep_their_opcodes() -> None:
    running = kernel("id*:int64,x:int64", "id*:int64,y:int64", context({"y": "product($x,10)"}))
    for opcode in ("I", "U", "P", "D", "SD"):
        assert publish(running, opcode, 1, 5) == [Event(opcode, "N", (1, 50))]


def test_an_unknown_function_is_refused_with_line_and_name() -> None:
    with pytest.raises(ModelError, match=r"line 4: .*there is no function summ\(\).*sum"):
        kernel("id*:int64", "id*:int64,y:int64", context({"y": "summ(1,2)"}))


def test_a_refusal_takes_no_number() -> None:
    running = kernel(
        "id*:int64,x:string", "n*:int64,k*:string", context({"n": "eventNumber()", "k": "$x"})
    )
    assert publish(running, "I", 1, "a")[0].values == (0, "a")
    assert publish(running, "I", 2, None) == []
    assert running.take_refusals() == [("q/out", "key field k is null")]
    assert publish(running, "I", 3, "b")[0].values == (1, "b")

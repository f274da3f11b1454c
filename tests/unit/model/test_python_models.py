"""Models in Python: the same as in XML, and the documented example."""

import contextlib
import io
import re

import pytest
from lxml import etree

from espha.builder import Input, Project, connector, element
from espha.model import ModelError, model_digest
from espha.reader import read_project
from espha.windows.types import WINDOWS
from support.models import ROOT, TRADES

PAGE = (ROOT / "docs/reference/models/python-models.md").read_text(encoding="utf-8")


def test_the_documented_example_prints_what_the_page_says() -> None:
    (code,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    (expected,) = re.findall(r"```text\n(.*?)```", PAGE, re.DOTALL)
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(code, "python-models.md", "exec"), {})  # noqa: S102 - our own page
    assert printed.getvalue() == expected


def test_a_model_in_python_is_the_model_in_xml() -> None:
    project = Project("trades", index="pi_RBTREE")
    query = project.query("q")
    schema = "id*:int32,symbol:string,quantity:int32,price:double"
    trade = query.source("trade", schema)
    priced = query.compute(
        "priced", trade, "id*:int32,symbol:string,total:double",
        ["upper(symbol)", "quantity * price"],
    ).connect(connector("kafka", "sub", "out"))  # fmt: skip
    large = query.filter("large", priced, "total >= 100", index="pi_EMPTY")
    large.connect(connector("kafka", "sub", "out"))
    kept = query.copy("kept", large, collapse_updates=True)
    kept.connect(connector("kafka", "sub", "out"))
    assert model_digest(project.read()) == model_digest(read_project(TRADES))


def test_every_call_makes_a_window_that_can_be_read() -> None:
    project = Project("all", index="pi_HASH")
    query = project.query("q", trace="none")
    one = query.source("one", "id*:int64,k:int64,x:double,s:string", insert_only=True)
    one.add(element("splitter-expr", element("expression", "k % 2")))
    table = query.source("table", "k*:int64,name:string")
    last = query.copy("last", Input(one, slot=1), ("bycount_sliding", "10"))
    query.union("both", [last, Input(one, slot=0)], strict=False)
    selected = ["l_id", "l_x", "r_name"]
    query.join("joined", one, table, "leftouter", on={"k": "k"}, output=selected)
    query.functional("f", one, "id*:int64,n:double", {"n": "sum($x,1)"})
    query.aggregate("g", one, "k*:int64,n:int64", ["ESP_aCount(x)"])
    query.calculate(
        "c", one, "id*:int64,mean:double", "Summary", parameters={"windowLength": 5},
        input_map={"input": "x"}, output_map={"meanOut": "mean"}, index="pi_EMPTY",
    )  # fmt: skip
    query.lua("lua", one, "id*:int64", "function create(d) return {id = d.id} end")
    query.python("py", one, "id*:int64", "def create(d, c): return {'id': d['id']}")
    query.window("counter", "n", [one, table], count_interval="5 seconds")
    model = project.read()
    types = {window.name: window.type for window in model.windows.values()}
    assert types["n"] == "counter"
    assert len(types) == 11
    edges = [(edge.source, edge.role, edge.slot) for edge in model.edges_into("q/both")]
    assert edges == [("q/last", "data", None), ("q/one", "data", 0)]
    assert [edge.role for edge in model.edges_into("q/joined")] == ["left", "right"]
    assert model.windows["q/last"].retention is not None
    assert model_digest(read_project(project.xml())) == model_digest(model)


def test_every_window_type_can_be_called_by_its_name() -> None:
    query = Project("p").query("q")
    for name in WINDOWS:
        assert callable(getattr(query, name.replace("-", "_")))
    with pytest.raises(AttributeError, match="'windw' is not one of: source"):
        query.windw("w")
    made = query.remove_state("log", query.counter("n", [], count_interval="1 minute"))
    assert etree.tostring(made.element) == b'<window-remove-state name="log"/>'
    filtered = query.window("filter", "f", expression="x > 1", index="pi_EMPTY")
    assert filtered.element.get("index") == "pi_EMPTY"
    assert filtered.element.findtext("expression") == "x > 1"


def test_problems_name_lines_of_the_xml() -> None:
    project = Project("p")
    query = project.query("q")
    query.filter("f", query.source("s", "id*:int64"), "nothing > 1")
    with pytest.raises(ModelError) as caught:
        project.read()
    (problem,) = caught.value.problems
    assert problem.element == "expression"
    assert "nothing > 1".replace(">", "&gt;") in project.xml().splitlines()[problem.line - 1]

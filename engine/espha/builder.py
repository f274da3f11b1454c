"""Models written in Python instead of XML.

    project = Project("trades")
    query = project.query("q")
    trade = query.source("trade", "id*:int32,symbol:string,quantity:int32,price:double")
    large = query.filter("large", trade, "quantity * price >= 100")
    model = project.read()

Every call makes the element of the same name, and `read` reads them like any other model: there
is one reader, so a model means the same however it was written.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import NamedTuple

from lxml import etree

from espha.model import project as typed
from espha.reader import read_project
from espha.windows.types import WINDOWS

Element = etree._Element


def element(tag: str, *content: Element | str, **attributes: object) -> Element:
    """Return an element.

    Args:
        tag: its name.
        content: elements, and texts, which come before them.
        attributes: `insert_only=True` is the attribute `insert-only="true"`, a name that is a word
            of Python ends with an underscore; what is None is left out.
    """
    made = etree.Element(tag)
    for name, value in attributes.items():
        if value is not None:
            text = str(value).lower() if isinstance(value, bool) else str(value)
            made.set(name.rstrip("_").replace("_", "-"), text)
    for part in content:
        if isinstance(part, str):
            made.text = (made.text or "") + part
        else:
            made.append(part)
    return made


def properties(tag: str, values: Mapping[str, object]) -> Element:
    """Return `<tag><properties><property name=…>value</property>…`."""
    inner = [element("property", str(value), name=name) for name, value in values.items()]
    return element(tag, element("properties", *inner))


def connector(class_: str, type_: str, name: str = "", **values: object) -> Element:
    """Return a connector: its class, `pub` or `sub`, its name, and its properties."""
    made = properties("connector", {"type": type_, **values})
    made.set("class", class_)
    made.set("name", name or class_)
    return made


class WindowRef(NamedTuple):
    """A window of a query; other windows take it as their input.

    Attributes:
        name: its name.
        element: its XML, to which anything can be added.
    """

    name: str
    element: Element

    def add(self, *content: Element | str) -> "WindowRef":
        """Add elements to the window, such as a splitter."""
        self.element.extend(part for part in content if not isinstance(part, str))
        return self

    def connect(self, *connectors: Element) -> "WindowRef":
        """Add connectors."""
        return self.add(element("connectors", *connectors))


class Input(NamedTuple):
    """An edge with a role or a slot.

    Attributes:
        window: where it comes from.
        role: such as "left".
        slot: of the splitter of that window.
    """

    window: WindowRef
    role: str | None = None
    slot: int | None = None


Inputs = WindowRef | Input | Sequence[WindowRef | Input]


class Query:
    """A continuous query; each method adds a window, and the edges into it.

    Window types whose elements are more than texts have a method of their own here; all others
    have one by their name (`query.union`, `query.remove_state`), which is `window` of that type.
    """

    def __init__(self, name: str, **attributes: object) -> None:
        self._windows, self._edges = element("windows"), element("edges")
        self.element = element("contquery", self._windows, self._edges, name=name, **attributes)

    def __getattr__(self, name: str) -> Callable[..., WindowRef]:
        """Return what adds a window of a type that has no method of its own.

        `query.counter("n", one, count_interval="5 seconds")` is
        `query.window("counter", "n", one, count_interval="5 seconds")`.
        """
        type_ = name.rstrip("_").replace("_", "-")
        if type_ not in WINDOWS:
            raise AttributeError(f"{name!r} is not one of: {', '.join(WINDOWS)}")
        return partial(self.window, type_)

    def window(
        self,
        type_: str,
        name: str,
        inputs: Inputs = (),
        content: Iterable[Element] = (),
        **values: object,
    ) -> WindowRef:
        """Add a window of any type.

        Args:
            type_: the word after `window-`.
            name: its name.
            inputs: what leads into it, in order.
            content: its elements.
            values: its attributes (see `element`), and elements that hold nothing but a text:
                `expression="x > 1"` where the type has `<expression>`, `schema="id*:int64"` where
                it has `<schema-string>`.
        """
        texts, attributes = _divided(type_, values)
        made = element(f"window-{type_}", *texts, *content, name=name, **attributes)
        self._windows.append(made)
        for each in [inputs] if isinstance(inputs, WindowRef | Input) else inputs:
            edge = each if isinstance(each, Input) else Input(each)
            self._edges.append(
                element(
                    "edge", source=edge.window.name, target=name, role=edge.role, slot=edge.slot
                )
            )
        return WindowRef(name, made)

    def source(self, name: str, schema: str, **attributes: object) -> WindowRef:
        """Add a source; the schema is written as `id*:int64,name:string`."""
        return self.window("source", name, (), (), schema=schema, **attributes)

    def filter(self, name: str, inputs: Inputs, expression: str, **attributes: object) -> WindowRef:
        """Add a filter."""
        return self.window("filter", name, inputs, (), expression=expression, **attributes)

    def compute(
        self,
        name: str,
        inputs: Inputs,
        schema: str,
        expressions: Iterable[str],
        **attributes: object,
    ) -> WindowRef:
        """Add a compute window, with one expression for each field that is no key."""
        content = [_field_expressions(expressions)]
        return self.window("compute", name, inputs, content, schema=schema, **attributes)

    def aggregate(
        self,
        name: str,
        inputs: Inputs,
        schema: str,
        expressions: Iterable[str],
        **attributes: object,
    ) -> WindowRef:
        """Add an aggregate window, with one expression for each field that is no key."""
        content = [_field_expressions(expressions)]
        return self.window("aggregate", name, inputs, content, schema=schema, **attributes)

    def copy(
        self, name: str, inputs: Inputs, retention: tuple[str, str] | None = None,
        **attributes: object,
    ) -> WindowRef:  # fmt: skip
        """Add a copy; `retention` is its type and amount: ("bytime_sliding", "5 minutes")."""
        content = (
            [] if retention is None else [element("retention", retention[1], type=retention[0])]
        )
        return self.window("copy", name, inputs, content, **attributes)

    def join(
        self,
        name: str,
        left: WindowRef,
        right: WindowRef,
        type_: str,
        *,
        on: Mapping[str, str],
        output: Iterable[str],
        **attributes: object,
    ) -> WindowRef:
        """Add a join.

        Args:
            name: its name.
            left: the stream.
            right: the table.
            type_: leftouter, rightouter, inner or fullouter.
            on: fields of the left side, and of the right side that are equal to them.
            output: selected fields, as `l_name` or `r_name`; they keep their names.
            attributes: those of `<join>`.
        """
        pairs = [element("fields", left=one, right=two) for one, two in on.items()]
        join = element("join", element("conditions", *pairs), type=type_, **attributes)
        selected = [element("field-selection", name=each[2:], source=each) for each in output]
        sides = [Input(left, "left"), Input(right, "right")]
        return self.window("join", name, sides, [join, element("output", *selected)])

    def functional(
        self,
        name: str,
        inputs: Inputs,
        schema: str,
        functions: Mapping[str, str],
        **attributes: object,
    ) -> WindowRef:
        """Add a functional window; `functions` are in the order in which they run."""
        made = [element("function", text, name=each) for each, text in functions.items()]
        context = element("function-context", element("functions", *made))
        return self.window("functional", name, inputs, [context], schema=schema, **attributes)

    def calculate(
        self,
        name: str,
        inputs: Inputs,
        schema: str,
        algorithm: str,
        *,
        parameters: Mapping[str, object],
        input_map: Mapping[str, str],
        output_map: Mapping[str, str],
        **attributes: object,
    ) -> WindowRef:
        """Add a calculate window."""
        maps = {"parameters": parameters, "input-map": input_map, "output-map": output_map}
        content = [properties(tag, values) for tag, values in maps.items()]
        return self.window(
            "calculate", name, inputs, content, schema=schema, algorithm=algorithm, **attributes
        )

    def lua(
        self, name: str, inputs: Inputs, schema: str, code: str, **attributes: object
    ) -> WindowRef:
        """Add a Lua window."""
        return self.window("lua", name, inputs, (), schema=schema, code=code, **attributes)

    def python(
        self, name: str, inputs: Inputs, schema: str, code: str, **attributes: object
    ) -> WindowRef:
        """Add a Python window."""
        return self.window("python", name, inputs, (), schema=schema, code=code, **attributes)


class Project:
    """A project that is being written."""

    def __init__(self, name: str, **attributes: object) -> None:
        """Start an empty project.

        Args:
            name: its name.
            attributes: see `element`.
        """
        self._queries = element("contqueries")
        self.element = element("project", self._queries, name=name, **attributes)

    def query(self, name: str, **attributes: object) -> Query:
        """Add a query."""
        made = Query(name, **attributes)
        self._queries.append(made.element)
        return made

    def xml(self) -> str:
        """Return the project as XML, for `espha run` and for deployments."""
        etree.indent(self.element)
        return etree.tostring(self.element, encoding="unicode")

    def read(self, tokens: Mapping[str, str] | None = None) -> typed.Project:
        """Read and check the project.

        Args:
            tokens: values for `@TOKEN@`.

        Raises:
            ModelError: with every problem found; its lines are those of `xml()`.
        """
        return read_project(self.xml(), self.element.get("name", ""), tokens=tokens)


def _divided(type_: str, values: Mapping[str, object]) -> tuple[list[Element], dict[str, object]]:
    """Return the values that are elements of this type of window, as elements, and the others."""
    window_type = WINDOWS.get(type_)
    known = window_type.elements if window_type else frozenset()
    texts: list[Element] = []
    attributes: dict[str, object] = {}
    for name, value in values.items():
        tag = "schema-string" if name == "schema" else name.rstrip("_").replace("_", "-")
        if tag in known and isinstance(value, str):
            texts.append(element(tag, value))
        else:
            attributes[name] = value
    return texts, attributes


def _field_expressions(expressions: Iterable[str]) -> Element:
    return element("output", *(element("field-expr", text) for text in expressions))

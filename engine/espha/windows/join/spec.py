"""Join windows: rows of two inputs, brought together by what they have in common."""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple, cast, get_args

from lxml import etree

from espha.languages.eel import ExpressionError, Initialize, Language, converter
from espha.languages.eel.from_xml import read_expression, read_language
from espha.model.project import Field, Window
from espha.model.schema import read_schema
from espha.model.types import DOUBLES, INTEGERS, TYPES, TypeName
from espha.model.xml import attributes, boolean, children, only_child, text_of
from espha.windows.join.keys import Column, JoinType, Side, key_columns, relation_of
from espha.windows.shared.spec import Feed, Reading, WindowType

_TYPES = get_args(JoinType)
_JOIN_ATTRIBUTES = frozenset(
    {"type", "left", "right", "left-index", "right-index", "no-regenerates",
     "use-secondary-index", "use-tagged-token"}
)  # fmt: skip
_OUTPUT = frozenset(
    {"field-selection", "field-expr", "left-select", "right-select", "left-expr", "right-expr"}
)
_CONDITIONS = frozenset({"conditions", "join-conditions"})

Pairs = tuple[tuple[str, str], ...]


class JoinWindow(Window):
    """Joins facts with rows of a table.

    Attributes:
        join_type: which rows without a partner are in the result.
        left: port (place among the edges) of the left side.
        facts: which side streams; the other one is the table.
        conditions: (left field, right field) that must be equal.
        columns: one a field.
        initialize: what its expressions share.
        regenerates: a change of the table changes the results that were made with it.
        tagged: what one source event does on both sides is taken together.
        pairs: without an index, only units of one source event meet.
        keeps_facts: the side that streams is kept; else its rows only pass.
    """

    type: Literal["join"] = "join"
    join_type: JoinType
    left: int
    facts: Side
    conditions: Pairs
    columns: tuple[Column, ...]
    initialize: Initialize | None = None
    regenerates: bool = True
    tagged: bool = False
    pairs: bool = False
    keeps_facts: bool = True


class _Sides(NamedTuple):
    """The two inputs; `names` has all their fields, as l_name and r_name."""

    left: Feed
    right: Feed
    port: int
    names: dict[str, Field]


class _Item(NamedTuple):
    """One field of the result."""

    name: str
    type: TypeName
    column: Column
    key: bool = False


def _read(reading: Reading) -> JoinWindow | None:
    findings = reading.findings
    before = len(findings.problems)
    join = only_child(reading.element, "join", findings)
    if join is None:
        reading.refuse("needs a <join> with a type and conditions")
        return None
    flags = _flags(join, reading)
    sides = _sides(reading, join)
    if sides is None:
        return None
    conditions = _conditions(join, sides, reading)
    joined = joined_fields(sides.left.fields, sides.right.fields)
    language = read_language(reading.element, joined, findings)
    items = _items(reading, sides, language) if language is not None else []
    if language is None or len(findings.problems) > before:
        return None
    type_ = cast(JoinType, join.get("type"))
    output = _ordered(_with_keys(items, type_, conditions, sides), reading)
    if output is None:
        return None
    facts = relation_of(conditions, sides.left.fields, sides.right.fields).facts(type_)
    return JoinWindow(
        **reading.common,
        fields=tuple(Field(item.name, item.type, item.key) for item in output),
        join_type=type_,
        left=sides.port,
        facts=facts,
        conditions=conditions,
        columns=tuple(item.column for item in output),
        initialize=language.initialize,
        regenerates=not flags[0],
        tagged=flags[1] or reading.tagged,
        pairs=flags[1],
        keeps_facts=join.get(f"{facts}-index", "").strip().lower() != "pi_empty",
    )


def _flags(join: etree._Element, reading: Reading) -> tuple[bool, bool]:
    """Check the attributes; return no-regenerates and use-tagged-token."""
    findings = reading.findings
    attributes(join, _JOIN_ATTRIBUTES, findings)
    if join.get("type") not in _TYPES:
        found, known = join.get("type", ""), ", ".join(_TYPES)
        findings.refuse(join, f"type {found!r} is not one of: {known}")
    boolean(join, "use-secondary-index", findings)  # there always is one
    return (
        boolean(join, "no-regenerates", findings),
        boolean(join, "use-tagged-token", findings),
    )


def _sides(reading: Reading, join: etree._Element) -> _Sides | None:
    port = _left_port(reading, join)
    if port is None:
        return None
    left, right = reading.feeds[port], reading.feeds[1 - port]
    names = {f"l_{field.name}": field for field in left.fields}
    names |= {f"r_{field.name}": field for field in right.fields}
    return _Sides(left, right, port, names)


def _left_port(reading: Reading, join: etree._Element) -> int | None:
    """Say which input is left: by role, by the names in <join>, else the first."""
    roles = [feed.role for feed in reading.feeds]
    if max(Counter(roles)["left"], Counter(roles)["right"]) > 1:
        reading.refuse("has two edges of one role; one is left, one is right")
        return None
    if "left" in roles:
        return roles.index("left")
    if "right" in roles:
        return 1 - roles.index("right")
    names = [feed.path.split("/", maxsplit=1)[1] for feed in reading.feeds]
    ports = [
        place if end == "left" else 1 - place
        for end in ("left", "right")
        for place, name in enumerate(names)
        if join.get(end) == name
    ]
    given = [end for end in ("left", "right") if join.get(end) is not None]
    if len(ports) != len(given) or len(set(ports)) > 1:
        reading.findings.refuse(join, f"left and right must be {' and '.join(names)}")
        return None
    return ports[0] if ports else 0


def _conditions(join: etree._Element, sides: _Sides, reading: Reading) -> Pairs:
    findings = reading.findings
    result: list[tuple[str, str]] = []
    for block in children(join, _CONDITIONS, findings):
        for element in children(block, frozenset({"fields"}), findings):
            attributes(element, frozenset({"left", "right"}), findings)
            pair = (element.get("left", "").strip(), element.get("right", "").strip())
            _check_comparable(element, pair, sides, reading)
            result.append(pair)
    if not result:
        findings.refuse(join, 'needs <conditions> with at least one <fields left="" right=""/>')
    return tuple(dict.fromkeys(result))


def _check_comparable(
    element: etree._Element, pair: tuple[str, str], sides: _Sides, reading: Reading
) -> None:
    found: list[Field] = []
    for prefix, name, feed in (("l_", pair[0], sides.left), ("r_", pair[1], sides.right)):
        field = sides.names.get(prefix + name)
        if field is None:
            reading.findings.refuse(element, f"{name!r} is not a field of {feed.path}")
            return
        found.append(field)
    one, two = found
    if _comparison(one.type) != _comparison(two.type):
        reason = f"{one.name!r} is {one.type} and {two.name!r} is {two.type}; never equal"
        reading.findings.refuse(element, reason)


def _comparison(type_: str) -> str:
    return "number" if type_ in INTEGERS or type_ in DOUBLES else type_


def _items(reading: Reading, sides: _Sides, language: Language) -> list[_Item]:
    output = only_child(reading.element, "output", reading.findings)
    items: list[_Item] = []
    if output is None:
        for prefix in ("l_", "r_"):
            items += _selected(None, prefix, sides, reading, items)
        return items
    for element in children(output, _OUTPUT, reading.findings):
        if element.tag == "field-selection":
            items += _selection(element, sides, reading)
        elif element.tag == "field-expr":
            items += _expression(element, language, reading)
        else:
            prefix = "l_" if str(element.tag).startswith("left") else "r_"
            items += _selected(element, prefix, sides, reading, items)
    return items


def _selected(
    element: etree._Element | None,
    prefix: str,
    sides: _Sides,
    reading: Reading,
    before: Sequence[_Item],
) -> list[_Item]:
    """Return the fields of one side: all, those that are named, or all but the excluded ones.

    A name that is taken gets the prefix of its side.
    """
    feed = sides.left if prefix == "l_" else sides.right
    wanted, without = [field.name for field in feed.fields], list[str]()
    if element is not None:
        attributes(element, frozenset({"include", "exclude"}), reading.findings)
        without = _names(element.get("exclude", ""))
        included = _names(element.get("include", "") or text_of(element))
        wanted = wanted if included in ([], ["*"]) else included
        for name in wanted + without:
            if prefix + name not in sides.names:
                reading.findings.refuse(element, f"{name!r} is not a field of {feed.path}")
                return []
    taken = {item.name for item in before}
    return [
        _Item(
            prefix + name if name in taken else name,
            sides.names[prefix + name].type,
            Column(source=prefix + name),
        )
        for name in wanted
        if name not in without
    ]


def _names(text: str) -> list[str]:
    return text.replace(",", " ").split()


def _selection(element: etree._Element, sides: _Sides, reading: Reading) -> Iterator[_Item]:
    attributes(element, frozenset({"name", "source"}), reading.findings)
    source = element.get("source", "").strip()
    field = sides.names.get(source)
    if field is None:
        known = ", ".join([*sides.names][:30])
        reading.findings.refuse(element, f"source {source!r} is not one of: {known}")
        return
    yield _Item(element.get("name", "").strip() or field.name, field.type, Column(source=source))


def _expression(element: etree._Element, language: Language, reading: Reading) -> Iterator[_Item]:
    findings = reading.findings
    attributes(element, frozenset({"name", "type"}), findings)
    name, type_ = element.get("name", "").strip(), element.get("type", "").strip()
    if not name or type_ not in TYPES:
        findings.refuse(element, f"needs a name and a type, one of: {', '.join(sorted(TYPES))}")
        return
    expression = read_expression(element, language, findings)
    if expression is None:
        return
    try:
        converter(expression.type, type_)
    except ExpressionError as error:
        findings.refuse(element, str(error))
        return
    yield _Item(name, cast(TypeName, type_), Column(expression=expression.text))


def joined_fields(left: Sequence[Field], right: Sequence[Field]) -> list[Field]:
    """Return the fields that the expressions of a join know, left side first."""
    lefts = [Field(f"l_{field.name}", field.type) for field in left]
    return lefts + [Field(f"r_{field.name}", field.type) for field in right]


def _with_keys(
    items: Sequence[_Item], type_: JoinType, conditions: Pairs, sides: _Sides
) -> list[_Item]:
    """Mark the fields that are the key; those that were not selected go before all others."""
    keys = key_columns(type_, conditions, sides.left.fields, sides.right.fields)
    # Where a side can be missing, its key and the field that it equals are not the same.
    one_side = len({key.source[:2] for key in keys}) == 1
    equal = conditions if one_side or type_ == "inner" else ()
    selected, added = list(items), list[_Item]()
    for key in keys:
        field_type, place = sides.names[key.source].type, _place_of(key, selected, equal)
        if place is not None:
            selected[place] = _Item(selected[place].name, field_type, key, key=True)
            continue
        taken = {item.name for item in [*added, *selected]}
        name = key.source[2:]
        added.append(_Item(key.source if name in taken else name, field_type, key, key=True))
    return [*added, *selected]


def _place_of(key: Column, items: Sequence[_Item], equal: Pairs) -> int | None:
    """Find the field that is this key: selected, or its equal of the other side by its name."""
    for place, item in enumerate(items):
        if item.column.source == key.source and not item.key:
            return place
    pairs = [(f"l_{left}", f"r_{right}") for left, right in equal]
    equals = {two if one == key.source else one for one, two in pairs if key.source in (one, two)}
    for place, item in enumerate(items):
        if item.column.source in equals and item.name == key.source[2:] and not item.key:
            return place
    return None


def _ordered(items: Sequence[_Item], reading: Reading) -> list[_Item] | None:
    """Bring the fields into the order of the schema, if there is one; None: problems."""
    element, findings = reading.element, reading.findings
    counts = Counter(item.name for item in items)
    doubles = ", ".join(name for name, count in counts.items() if count > 1)
    if doubles:
        reading.refuse(f"field {doubles} is selected twice; give one another name")
        return None
    if element.find("schema") is None and element.find("schema-string") is None:
        return list(items)
    fields = read_schema(element, findings)
    if fields is None:
        return None
    wanted = {field.name: field for field in fields}
    found = {item.name: item for item in items}
    wrong = [name for name in found if name not in wanted or wanted[name].type != found[name].type]
    wrong += [name for name in wanted if name not in found]
    if wrong:
        reading.refuse(f"schema and output differ in {', '.join(dict.fromkeys(wrong))}")
        return None
    missing = [item.name for item in items if item.key and not wanted[item.name].key]
    if missing:
        reading.refuse(f"the key of the result has {', '.join(missing)}; make it a key")
        return None
    return [found[field.name]._replace(key=field.key) for field in fields]


WINDOW = WindowType(
    "join",
    _read,
    "merging",
    elements=frozenset({"join", "output", "schema", "schema-string", "expr-initialize"}),
    inputs=(2, 2),
    roles=frozenset({"left", "right"}),
    no_retention="a result goes when its rows go; give a window before it, or a copy after it, "
    "the retention",
    own_rows=True,
)

"""Random resources, made of the definition's schema."""

import re
from collections.abc import Callable
from typing import Any

from hypothesis import strategies as st

from espha_operator.api import Spec
from espha_operator.api.crd import structural

Object = dict[str, Any]
Path = list[str | int]
Ask = Callable[[Object], list[tuple[str, str]]]

_MATCH = re.compile(r"self\.matches\(r'(.*)'\)", re.DOTALL)
_KEYS = re.compile(r"(?<!!)key\.matches\(r?'(\^.*?\$)'\)")
_STEP = re.compile(r"\[([^]]*)\]|([^.\[]+)")
_AMOUNTS = (1, 2, "1", "0.5", "250m", "1500m", "200Mi", "600Mi", "1Gi", "1.5Gi", "2G", "3Gi", "8Gi")
_HEAPS = ("64Mi", "130Mi", "256Mi", "512Mi", "1Gi", 268435456)
_ALWAYS = ("engines", "kafka", "zookeeper", "adapters", "inputs", "file", "volume")
_SETTINGS: Object = {
    "log.segment.bytes": st.integers(1 << 20, 1 << 30) | st.just("1073741824"),
    "num.io.threads": st.integers(1, 8),
    "log.cleaner.enable": st.sampled_from(["true", "false"]),
    "compression.type": st.sampled_from(["producer", "zstd", "gzip"]),
    "unclean.leader.election.enable": st.sampled_from(["true", "false"]),
    "message.max.bytes": st.integers(1 << 20, 1 << 23),
}


def specs() -> st.SearchStrategy[Object]:
    """Return a strategy for specs; many of them break a rule."""
    made = _strategy(structural(Spec), "spec")
    return made.map(lambda spec: {**spec, "model": {"inline": "<project/>"}})


def _strategy(schema: Object, name: str) -> st.SearchStrategy[Any]:
    if name == "config":
        return st.fixed_dictionaries({}, optional=_SETTINGS)
    if name == "heap":
        return st.sampled_from(_HEAPS)
    if schema.get("x-kubernetes-int-or-string"):
        return st.sampled_from(_AMOUNTS)
    if "enum" in schema:
        return st.sampled_from(schema["enum"])
    kinds: dict[str, Callable[[Object, str], st.SearchStrategy[Any]]] = {
        "object": _object,
        "array": _array,
        "string": _text,
        "integer": _integer,
        "boolean": lambda *_: st.booleans(),
    }
    return kinds[schema["type"]](schema, name)


def _object(schema: Object, name: str) -> st.SearchStrategy[Any]:
    if "additionalProperties" in schema:
        values = _strategy(schema["additionalProperties"], f"{name}.*")
        least = schema.get("minProperties", 0)
        return st.dictionaries(_keys(schema), values, min_size=least, max_size=least + 2)
    fields = {one: _strategy(of, one) for one, of in schema["properties"].items()}
    needed = {one: fields.pop(one) for one in schema.get("required", [])}
    always = [one for one in _ALWAYS if one in fields]
    needed |= {one: fields.pop(one) for one in always}
    if "external" in fields:
        external = st.fixed_dictionaries({"external": fields.pop("external")})
        return _some(needed, fields) | _some(needed, fields) | external
    return _some(needed, fields)


@st.composite
def _some(
    draw: st.DrawFn,
    needed: dict[str, st.SearchStrategy[Any]],
    fields: dict[str, st.SearchStrategy[Any]],
) -> Object:
    """Draw all that is needed, and half of the others; Hypothesis itself takes fewer."""
    given = {name: one for name, one in fields.items() if draw(st.booleans())}
    return {name: draw(one) for name, one in {**needed, **given}.items()}


def _keys(schema: Object) -> st.SearchStrategy[str]:
    patterns = [
        _KEYS.search(rule["rule"]) for rule in schema.get("x-kubernetes-validations", [])
    ]
    found = [one[1] for one in patterns if one]
    return _matching(found[0], 60) if found else st.just("key")


def _array(schema: Object, name: str) -> st.SearchStrategy[Any]:
    least = schema.get("minItems", 0)
    return st.lists(_strategy(schema["items"], f"{name}[]"), min_size=least, max_size=least + 2)


def _text(schema: Object, _: str) -> st.SearchStrategy[Any]:
    for rule in schema.get("x-kubernetes-validations", []):
        if found := _MATCH.fullmatch(rule["rule"]):
            return _matching(found[1], schema["maxLength"])
    return st.text(st.characters(codec="ascii", categories=["L", "N", "P"]), min_size=1, max_size=20)


def _matching(pattern: str, longest: int) -> st.SearchStrategy[str]:
    alphabet = st.characters(codec="ascii", exclude_categories=["Cc"])
    made = st.from_regex(pattern, fullmatch=True, alphabet=alphabet)
    return made.filter(lambda text: len(text) <= min(longest, 60))


def _integer(schema: Object, _: str) -> st.SearchStrategy[Any]:
    return st.integers(schema.get("minimum", -100), schema.get("maximum", 10_000))


def accepted(spec: Object, ask: Ask) -> Object:
    """Return the spec without what the API server refuses of it.

    Args:
        spec: any spec; it is changed.
        ask: returns field and message of all that is refused of a spec.

    Raises:
        AssertionError: it refuses everything.
    """
    for _ in range(200):
        found = ask(spec)
        if not found:
            return spec
        for field, _message in found:
            _take_out(spec, _path(field))
    raise AssertionError(f"the API server takes nothing of it: {found}")


def _path(field: str) -> Path:
    steps = [inner or plain for inner, plain in _STEP.findall(field)]
    return [int(one) if one.isdigit() else one for one in steps[1:]]


def _take_out(spec: Object, path: Path) -> None:
    """Take out what lies on a path; of an object, one part; of what is not there, its parent."""
    *above, last = path or ["topics"]
    holder: Any = spec
    for depth, step in enumerate(above):
        try:
            holder = holder[step]
        except (KeyError, IndexError, TypeError):
            _take_out(spec, path[: depth + 1])
            return
    there = last in holder if isinstance(holder, dict) else int(last) < len(holder)
    if not there:
        if above:
            _take_out(spec, above)
    elif isinstance(holder[last], dict) and len(holder[last]) > 1:
        holder[last].popitem()
    else:
        del holder[last]

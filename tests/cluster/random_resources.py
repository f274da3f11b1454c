"""Random resources, made of the definition's schema."""

import re
from collections.abc import Callable
from functools import cache
from random import Random
from typing import Any

from espha_operator.api import Spec
from espha_operator.api.crd import structural

Object = dict[str, Any]
Path = list[str | int]
Ask = Callable[[Object], list[tuple[str, str]]]

_MATCH = re.compile(r"self\.matches\(r'(.*)'\)", re.DOTALL)
_KEYS = re.compile(r"(?<!!)key\.matches\(r?'(\^.*?\$)'\)")
_STEP = re.compile(r"\[([^]]*)\]|([^.\[]+)")
# What users write, and what looks like it.
_TEXTS = (
    "a", "a-b", "a.b-c.d", "0", "A_b.C", "", 20 * "a", 63 * "a", 63 * "a" + "." + 63 * "b",
    "example.com/team", "topology.kubernetes.io/zone", "kubernetes.io/hostname", "cq/in", "cq/öß",
    "/data/a.csv", "/data/a/.b/c", "/data/..", "k:9092", "10.0.0.1:2181", "k:65535", "k:65536",
    "espha/engine:0.1.0", "registry.example:5000/a/b_c@sha256:" + 64 * "0", "unlimited", "7d",
    "%Y-%m-%d", "%Ey%%", ",", "\t", "ü", "model.xml", "-XX:+UseG1GC", "-Da.b=c:d",
    "-XX:MaxMetaspaceSize=96m",
    "TZ", "_A1", "KAFKA_X", "true", "input-a", "x-kafka",
    "postgresql://writer@db.example:5432/results", "postgresql://db/%20", "postgresql://a:b@db/c",
    "peer:9000", "peer:x", "https://api.example:8443/rows", "http://u@h/", "2026-01-01 00:00:00",
    "wss://feed.example:8443/rows", "ws://u@h/", "0123456789ab@17", "0123456789ab@",
)  # fmt: skip
_SIGNS = "ab09AZ-._/:@%= "
_AMOUNTS = (1, 2, "1", "0.5", "250m", "1500m", "1e3", "200Mi", "600Mi", "1Gi", "1.5Gi", "2G", "3Gi",
            "8Gi", 1 << 31)  # fmt: skip
_HEAPS = ("64Mi", "130Mi", "256Mi", "512Mi", "1Gi", 1 << 28)
_SETTINGS: dict[str, tuple[int | str, ...]] = {
    "log.segment.bytes": (1 << 20, "1073741824"),
    "num.io.threads": (1, 8),
    "log.cleaner.enable": ("true", "false"),
    "compression.type": ("producer", "zstd"),
    "unclean.leader.election.enable": ("true", "false"),
    "message.max.bytes": (1 << 20, 1 << 23),
}
# Parts without which little would be made.
_ALWAYS = ("engines", "kafka", "zookeeper", "adapters", "inputs", "file", "volume")


def spec(seed: int) -> Object:
    """Return a random spec, the same one for the same seed; most of them break some rule."""
    made: Object = _Maker(Random(seed)).value(_schema(), "spec")
    return {**made, "model": {"inline": "<project/>"}}


@cache
def _schema() -> Object:
    return structural(Spec)


class _Maker:
    """Makes values of schemas."""

    def __init__(self, random: Random) -> None:
        self._random = random
        self._one = random.choice

    def value(self, schema: Object, name: str) -> Any:
        """Return a value of a schema."""
        if name == "config":
            return {key: self._one(of) for key, of in _SETTINGS.items() if self._chance(0.3)}
        if name == "heap":
            return self._one(_HEAPS)
        if schema.get("x-kubernetes-int-or-string"):
            return self._one(_AMOUNTS)
        if "enum" in schema:
            return self._one(schema["enum"])
        kinds: dict[str, Callable[[Object, str], Any]] = {
            "object": self._object,
            "array": self._array,
            "string": self._text,
            "integer": self._integer,
            "number": self._number,
            "boolean": lambda *_: self._chance(0.5),
        }
        return kinds[schema["type"]](schema, name)

    def _chance(self, share: float) -> bool:
        return self._random.random() < share

    def _object(self, schema: Object, name: str) -> Object:
        if "additionalProperties" in schema:
            return self._map(schema, name)
        fields = schema["properties"]
        if "external" in fields and self._chance(0.15):
            return {"external": self.value(fields["external"], "external")}
        needed = {*schema.get("required", []), *_ALWAYS}
        return {
            one: self.value(of, one)
            for one, of in fields.items()
            if one != "external" and (one in needed or self._chance(0.5))
        }

    def _map(self, schema: Object, name: str) -> Object:
        rules = [_KEYS.search(one["rule"]) for one in schema.get("x-kubernetes-validations", [])]
        pattern = next(one[1] for one in rules if one)
        least = schema.get("minProperties", 0)
        keys = [self._matching(pattern, 253) for _ in range(self._random.randint(least, 2))]
        return {key: self.value(schema["additionalProperties"], f"{name}.*") for key in keys}

    def _array(self, schema: Object, name: str) -> list[Any]:
        least = schema.get("minItems", 0)
        count = self._random.randint(least, max(least, 2))
        return [self.value(schema["items"], f"{name}[]") for _ in range(count)]

    def _text(self, schema: Object, _: str) -> str:
        for rule in schema.get("x-kubernetes-validations", []):
            if found := _MATCH.fullmatch(rule["rule"]):
                return self._matching(found[1], schema["maxLength"])
        return self._one(_TEXTS)

    def _matching(self, pattern: str, longest: int) -> str:
        """Return one of the known texts, or now and then whatever happens to match."""
        known = [one for one in _TEXTS if len(one) <= longest and re.fullmatch(pattern, one)]
        for _ in range(50 if self._chance(0.3) or not known else 0):
            made = "".join(self._random.choices(_SIGNS, k=self._random.randint(1, 8)))
            if len(made) <= longest and re.fullmatch(pattern, made):
                return made
        return self._one(known)

    def _integer(self, schema: Object, _: str) -> int:
        least, most = schema.get("minimum", -100), schema.get("maximum", 10_000)
        return self._one((least, most, self._random.randint(least, most)))

    def _number(self, schema: Object, _: str) -> float:
        least, most = schema.get("minimum", -100), schema.get("maximum", 10_000)
        return self._one((least, most, self._random.uniform(least, most)))


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

"""The CustomResourceDefinition, made of the pydantic models."""

import json
from typing import Any

from espha_operator.api.base import SENTENCE, Part, rules
from espha_operator.api.names import GROUP, KIND, PLURAL, SHORT, VERSION
from espha_operator.api.spec import Spec
from espha_operator.api.status import Status

# Pydantic's way of saying things that a structural schema says otherwise, or not at all.
_DROPPED = ("title", "additionalProperties", "examples", "$defs", "x-operator-default", SENTENCE)
_RULES = "x-kubernetes-validations"
_NAME_RULES = [
    {
        "rule": "self.metadata.name.size() <= 24",
        "message": "The name must have at most 24 characters: longer names are made of it.",
    },
    {
        "rule": "self.metadata.name.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$')",
        "message": "The name must start with a letter and have lower-case letters, digits and '-' "
        "only: Services are named after it.",
    },
]
_CONDITION = '.status.conditions[?(@.type=="{}")].{}'
_COLUMNS = [
    ("Phase", "string", ".status.phase"),
    ("Available", "string", _CONDITION.format("Available", "status")),
    ("Ready", "string", _CONDITION.format("Ready", "status")),
    ("Active", "string", ".status.active"),
    ("Engines", "string", ".status.engines"),
    ("Kafka", "string", ".status.kafka"),
    ("ZooKeeper", "string", ".status.zookeeper"),
    ("Model", "string", ".status.model"),
    ("Failovers", "integer", ".status.failovers"),
    ("Age", "date", ".metadata.creationTimestamp"),
]
# Shown by `kubectl get -o wide` only.
_WIDE = [("Message", "string", _CONDITION.format("Ready", "message"))]


def structural(model: type[Part]) -> dict[str, Any]:
    """Return the model as a structural schema (no references, no null, no free-form objects)."""
    schema = model.model_json_schema(by_alias=True)
    return _convert(schema, schema.get("$defs", {}))


def _resolve(node: dict[str, Any], defs: dict[str, Any]) -> dict[str, Any]:
    if "$ref" in node:
        target = _resolve(defs[node["$ref"].rsplit("/", 1)[-1]], defs)
        return _joined(target, {key: value for key, value in node.items() if key != "$ref"})
    options = [one for one in node.get("anyOf") or [] if one.get("type") != "null"]
    if len(options) == 1:
        rest = {key: value for key, value in node.items() if key not in ("anyOf", "default")}
        return _joined(_resolve(options[0], defs), rest)
    return node


def _joined(target: dict[str, Any], node: dict[str, Any]) -> dict[str, Any]:
    """Return what a place says on top of what it refers to; the rules of both hold."""
    both = [*target.get(_RULES, []), *node.get(_RULES, [])]
    return {**target, **node, **({_RULES: both} if both else {})}


def _with_sentence(result: dict[str, Any], sentence: str) -> None:
    """Make a rule of a pattern: the API server then says more than the pattern."""
    rule = f"self.matches(r'{result.pop('pattern')}')"
    result[_RULES] = [*rules((rule, sentence))[_RULES], *result.get(_RULES, [])]


def _convert(node: dict[str, Any], defs: dict[str, Any]) -> dict[str, Any]:
    node = _resolve(node, defs)
    result = {
        key: value for key, value in node.items() if key not in _DROPPED and value is not None
    }
    if node.get("x-operator-default"):
        _describe_default(result)
    if SENTENCE in node:
        _with_sentence(result, node[SENTENCE])
    values = node.get("additionalProperties")
    if isinstance(values, dict):
        result["additionalProperties"] = _convert(values, defs)
    if "items" in node:
        result["items"] = _convert(node["items"], defs)
    if "properties" in node:
        result["properties"] = {
            name: _property(one, defs, name in node.get("required", []))
            for name, one in node["properties"].items()
        }
    return result


def _property(node: dict[str, Any], defs: dict[str, Any], required: bool) -> dict[str, Any]:
    result = _convert(node, defs)
    kept_as_given = required or node.get("x-operator-default") or "anyOf" in node
    if "properties" in result and not kept_as_given:
        # An empty object here; the API server then fills in the defaults of its parts.
        result["default"] = {}
    return result


def _describe_default(result: dict[str, Any]) -> None:
    default = result.pop("default", None)
    if default is not None and not isinstance(default, dict | list):
        result["description"] = f"{result['description']} Default: {default}."


def _root() -> dict[str, Any]:
    return {
        "type": "object",
        "description": "Runs one event-stream model on several engines and keeps them in sync; one "
        "of them publishes, and another takes over when it dies.",
        "required": ["spec"],
        "properties": {
            "apiVersion": {"type": "string"},
            "kind": {"type": "string"},
            "metadata": {"type": "object"},
            "spec": _described_once(structural(Spec), set()),
            "status": structural(Status),
        },
        "x-kubernetes-validations": _NAME_RULES,
    }


def _described_once(node: dict[str, Any], seen: set[str]) -> dict[str, Any]:
    """Return a schema in which only the first of several equal objects describes its fields.

    What `kubectl apply` keeps of a definition is bounded, and components have much in common.
    """
    fields = {key: value for key, value in node.items() if key not in ("description", "default")}
    content = json.dumps(fields, sort_keys=True)
    if "properties" in node and content in seen:
        return {**node, **_undescribed(fields)}
    seen.add(content)
    result = dict(node)
    if "items" in node:
        result["items"] = _described_once(node["items"], seen)
    if "properties" in node:
        result["properties"] = {
            name: _described_once(one, seen) for name, one in node["properties"].items()
        }
    return result


def _undescribed(node: Any) -> Any:
    if isinstance(node, list):
        return [_undescribed(one) for one in node]
    if not isinstance(node, dict):
        return node
    return {
        name: _undescribed(one)
        for name, one in node.items()
        if not (name == "description" and isinstance(one, str))
    }


def crd(annotations: dict[str, str] | None = None) -> dict[str, Any]:
    """Return the CustomResourceDefinition of `EspHaDeployment`."""
    metadata: dict[str, Any] = {"name": f"{PLURAL}.{GROUP}"}
    if annotations:
        metadata["annotations"] = annotations
    version = {
        "name": VERSION,
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": _root()},
        "subresources": {
            "status": {},
            "scale": {
                "specReplicasPath": ".spec.engines.replicas",
                "statusReplicasPath": ".status.engineReplicas",
                "labelSelectorPath": ".status.selector",
            },
        },
        "additionalPrinterColumns": [
            *({"name": name, "type": kind, "jsonPath": path} for name, kind, path in _COLUMNS),
            *(
                {"name": name, "type": kind, "jsonPath": path, "priority": 1}
                for name, kind, path in _WIDE
            ),
        ],
    }
    # `kubectl explain esphadeployment` needs the kind's own name as well.
    names = {"kind": KIND, "plural": PLURAL, "singular": SHORT, "listKind": f"{KIND}List"}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": metadata,
        "spec": {
            "group": GROUP,
            "names": {**names, "shortNames": [SHORT, KIND.lower()]},
            "scope": "Namespaced",
            "versions": [version],
        },
    }

"""JSON schemas of Kubernetes' kinds, for kubeconform: of Kubernetes' own description, offline.

kubeconform fetches schemas from a public site. Here they are made of the OpenAPI description in
Kubernetes' Go module, which the local cluster is built of as well, and of the CRD.
"""

import copy
import json
from pathlib import Path
from typing import Any

import yaml

from tools.offline_cluster import cache, golang
from tools.offline_cluster.node import KUBERNETES

# Raise it when the same description comes to make other schemas.
STEPS = "2"
Schema = dict[str, Any]
_KINDS = "x-kubernetes-group-version-kind"
_REF = "#/definitions/"


def directory() -> Path:
    """Return a directory of schemas, one a kind: `deployment-apps-v1.json`, `pod-v1.json`."""

    def make(path: Path) -> None:
        module = golang.module("k8s.io/kubernetes", KUBERNETES)
        text = (module / "api" / "openapi-spec" / "swagger.json").read_text()
        write(of_kinds(json.loads(text)), path)

    return cache.once("kube-schemas", cache.digest(KUBERNETES, STEPS), make)


def write(schemas: dict[str, Schema], path: Path) -> None:
    """Write schemas into a directory."""
    for name, schema in schemas.items():
        (path / f"{name}.json").write_text(json.dumps(schema))


def of_kinds(swagger: Schema) -> dict[str, Schema]:
    """Return a schema for each kind of an OpenAPI (2.0) description, by its file's name."""
    known: Schema = swagger["definitions"]
    strict = {name: _strict(one) for name, one in known.items()}
    return {
        _name(kind["kind"], kind["group"], kind["version"]): _whole(name, strict)
        for name, one in known.items()
        for kind in one.get(_KINDS, ())
    }


def of_crd(path: Path) -> dict[str, Schema]:
    """Return a schema for each version of a CustomResourceDefinition."""
    spec = yaml.safe_load(path.read_text())["spec"]
    made = {}
    for version in spec["versions"]:
        schema = copy.deepcopy(version["schema"]["openAPIV3Schema"])
        # What the structural schema leaves to the API server.
        schema["properties"]["metadata"] = {"type": "object"}
        name = _name(spec["names"]["kind"], spec["group"], version["name"])
        made[name] = _strict(schema)
    return made


def _name(kind: str, group: str, version: str) -> str:
    """Return what kubeconform calls the kind: with the group's first word, if it has a group."""
    return "-".join(filter(None, (kind, group.split(".", maxsplit=1)[0], version))).lower()


def _whole(name: str, definitions: dict[str, Schema]) -> Schema:
    """Return a definition with all that it refers to, and nothing else."""
    needed, left = set[str](), {name}
    while left:
        here = left.pop()
        needed.add(here)
        left |= set(_references(definitions[here])) - needed
    return {"$ref": _REF + name, "definitions": {one: definitions[one] for one in sorted(needed)}}


def _references(node: Any) -> list[str]:
    if isinstance(node, dict):
        # A property may have this name too.
        target = node.get("$ref")
        own = [target.removeprefix(_REF)] if isinstance(target, str) else []
        return own + [name for value in node.values() for name in _references(value)]
    if isinstance(node, list):
        return [name for value in node for name in _references(value)]
    return []


def _strict(node: Schema) -> Schema:
    """Return a schema that refuses fields which it does not know."""
    made = {key: value for key, value in node.items() if not key.startswith("x-")}
    if node.get("x-kubernetes-int-or-string") or node.get("format") == "int-or-string":
        made.pop("format", None)
        made["type"] = ["integer", "string"]
    if str(node.get("description", "")).startswith("Quantity is"):
        made["type"] = ["string", "number"]
    for key in ("items", "additionalProperties"):
        if isinstance(node.get(key), dict):
            made[key] = _strict(node[key])
    if "properties" in node:
        made["properties"] = {name: _strict(one) for name, one in node["properties"].items()}
        if not node.get("x-kubernetes-preserve-unknown-fields"):
            made.setdefault("additionalProperties", False)
    return made

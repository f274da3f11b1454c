"""Schemas for kubeconform: whole, strict, and by the names that it asks for."""

from pathlib import Path
from typing import Any

from tools import ROOT, kube_schemas

SWAGGER: dict[str, Any] = {
    "definitions": {
        "Port": {"type": "string", "format": "int-or-string"},
        "Any": {"description": "of every kind"},
        "Spec": {
            "type": "object",
            "properties": {
                "port": {"$ref": "#/definitions/Port"},
                "$ref": {"type": "string"},
                "x-own": {"$ref": "#/definitions/Any"},
                "labels": {"type": "object", "additionalProperties": {"type": "string"}},
            },
        },
        "Thing": {
            "type": "object",
            "properties": {"spec": {"$ref": "#/definitions/Spec"}},
            "x-kubernetes-group-version-kind": [
                {"group": "things.example.com", "kind": "Thing", "version": "v1"},
                {"group": "", "kind": "Thing", "version": "v2"},
            ],
        },
    }
}


def test_a_kind_has_all_that_it_needs_and_refuses_the_rest() -> None:
    made = kube_schemas.of_kinds(SWAGGER)
    assert sorted(made) == ["thing-things-v1", "thing-v2"]
    known = made["thing-v2"]["definitions"]
    assert sorted(known) == ["Any", "Port", "Spec", "Thing"]
    assert made["thing-v2"]["$ref"] == "#/definitions/Thing"
    assert known["Port"] == {"type": ["integer", "string"]}
    spec = known["Spec"]
    assert spec["additionalProperties"] is False
    assert sorted(spec["properties"]) == ["$ref", "labels", "port", "x-own"]
    assert spec["properties"]["labels"]["additionalProperties"] == {"type": "string"}


def test_the_own_kind_is_known(tmp_path: Path) -> None:
    made = kube_schemas.of_crd(ROOT / "crds" / "esphadeployments.yaml")
    assert list(made) == ["esphadeployment-espha-v1alpha1"]
    schema = made["esphadeployment-espha-v1alpha1"]
    assert schema["properties"]["spec"]["additionalProperties"] is False
    kube_schemas.write(made, tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["esphadeployment-espha-v1alpha1.json"]

"""The models, and what is made of them."""

import json
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from espha_operator.api import Spec, Status
from espha_operator.api.__main__ import generated
from espha_operator.api.crd import crd, structural
from espha_operator.api.images import Images
from espha_operator.api.names import RELEASE
from espha_operator.resources import kafka
from unit.operator.samples import deployment

ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize("path", sorted(generated()))
def test_generated_files_are_fresh(path: str) -> None:
    """`python -m espha_operator.api` makes them."""
    assert (ROOT / path).read_text() == generated()[path]


def test_the_version_stands_in_one_place() -> None:
    """Everything else is made of the installed package's, which `make venv` keeps up to date."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert project["version"] == RELEASE
    assert Images(_env_file=None).engine_image == f"espha/engine:{RELEASE}"
    sources = [*ROOT.glob("engine/espha/**/*.py"), *ROOT.glob("operator/**/*.py")]
    assert [path for path in sources if RELEASE in path.read_text()] == []


def test_settings_of_a_managed_server_are_told_apart_from_the_schema() -> None:
    spec = structural(Spec)["properties"]
    for part, both in (("kafka", set()), ("zookeeper", {"sessionTimeout"})):
        rule = spec[part]["x-kubernetes-validations"][0]["rule"]
        named = set(re.findall(r"has\(self\.(\w+)\)", rule))
        assert named == set(spec[part]["properties"]) - both


def fields(schema: dict[str, Any], path: str = "") -> list[tuple[str, dict[str, Any]]]:
    found = []
    for name, field in schema.get("properties", {}).items():
        here = f"{path}.{name}"
        found += [(here, field), *fields(field, here), *fields(field.get("items", {}), here)]
    return found


@pytest.mark.parametrize("model", [Spec, Status])
def test_every_field_is_described_and_typed(model: type[Spec | Status]) -> None:
    every = fields(structural(model))
    assert len(every) > 10
    for path, field in every:
        assert field.get("description"), path
        assert "type" in field or field.get("x-kubernetes-int-or-string"), path
        assert "anyOf" not in field and "$ref" not in field, path
        assert "x-kubernetes-preserve-unknown-fields" not in field, path


def test_texts_that_rules_look_at_are_bounded() -> None:
    """The API server refuses a CRD whose rules could cost too much."""
    for path, field in fields(structural(Spec)):
        if field.get("type") == "string" and "enum" not in field:
            assert "maxLength" in field or "pattern" in field, path
        if field.get("type") == "array":
            assert "maxItems" in field, path


def test_the_api_server_does_not_fill_in_what_rules_must_see() -> None:
    spec = structural(Spec)["properties"]
    for part in ("kafka", "zookeeper"):
        given = [name for name, field in spec[part]["properties"].items() if "default" in field]
        assert given == []
    assert spec["engines"]["properties"]["replicas"]["default"] == 3
    assert "default" not in spec["model"]


def test_the_definition_fits_what_kubectl_keeps_of_it() -> None:
    """`kubectl apply` writes it into an annotation; all of them together may have 256 KiB."""
    kept = json.dumps(crd(), separators=(",", ":"))
    escaped = len(kept) + 5 * sum(kept.count(sign) for sign in "<>&")
    assert escaped < 235_000


def test_every_text_with_a_pattern_says_in_a_sentence_what_to_give() -> None:
    bare = [
        path
        for path, field in fields(structural(Spec))
        if "pattern" in field or "x-sentence" in field
    ]
    assert bare == []


def test_columns_of_get() -> None:
    columns = crd()["spec"]["versions"][0]["additionalPrinterColumns"]
    assert [one["name"].upper() for one in columns] == [
        "PHASE", "AVAILABLE", "READY", "ACTIVE", "ENGINES", "KAFKA", "ZOOKEEPER", "MODEL",
        "FAILOVERS", "AGE", "MESSAGE",
    ]  # fmt: skip
    assert [one["name"] for one in columns if one.get("priority")] == ["Message"]


def test_conditions_are_told_apart_by_their_type() -> None:
    """So that `kubectl apply` and other writers do not take one for the other."""
    conditions = structural(Status)["properties"]["conditions"]
    assert conditions["x-kubernetes-list-type"] == "map"
    assert conditions["x-kubernetes-list-map-keys"] == ["type"]


@pytest.mark.parametrize(
    ("topics", "kafka", "factor", "in_sync"),
    [
        ({}, {}, 3, 2),
        ({}, {"replicas": 1}, 1, 1),
        ({}, {"replicas": 2}, 2, 1),
        ({"replicationFactor": 2, "minInSyncReplicas": 2}, {}, 2, 2),
        ({"replicationFactor": 1}, {}, 1, 1),
    ],
)
def test_copies_follow_the_brokers(
    topics: dict[str, int], kafka: dict[str, int], factor: int, in_sync: int
) -> None:
    spec = deployment(topics=topics, kafka=kafka).spec
    assert (spec.replication_factor, spec.min_in_sync) == (factor, in_sync)


@pytest.mark.parametrize(
    ("given", "wanted"), [("unlimited", -1), ("30s", 30000), ("2h", 7200000), ("7d", 604800000)]
)
def test_retention_in_milliseconds(given: str, wanted: int) -> None:
    assert deployment(topics={"retention": given}).spec.topics.retention_ms == wanted


@pytest.mark.parametrize(
    "spec",
    [
        {"modle": {}},
        {"engines": {"replicas": "three"}},
        {"zookeeper": {"tickTime": 501}},
        {"topics": {"retention": "a while"}},
        {"topics": {"prefix": "../x"}},
        {"adapters": {"inputs": [{"name": "Bad Name"}]}},
    ],
)
def test_bad_specs_are_refused(spec: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        deployment(**spec)


def test_a_command_for_all_objects_does_not_mean_deployments() -> None:
    """`kubectl delete all --all` would delete them, with their topics."""
    assert "categories" not in crd()["spec"]["names"]


def test_volumes_outlive_a_deployment_unless_its_spec_says_otherwise() -> None:
    kept = [
        one["spec"]["persistentVolumeClaimRetentionPolicy"]
        for one in kafka.kafka(deployment())
        if one["kind"] == "StatefulSet"
    ]
    assert kept == [{"whenDeleted": "Retain", "whenScaled": "Retain"}]


PLACES = {
    "a file of SQLite": ({"path": "/data/a.db"}, "needs a volume"),
    "no place": ({}, "exactly one of: path, url"),
    "two places": ({"path": "/data/a.db", "url": "postgresql://h/d"}, "exactly one of: path, url"),
    "a file elsewhere": ({"path": "/etc/a.db"}, "path"),
    "a password": ({"url": "postgresql://u:secret@h/d"}, "url"),
}


@pytest.mark.parametrize(("place", "sentence"), PLACES.values(), ids=PLACES.keys())
def test_a_table_adapter_needs_a_place_and_a_volume_only_for_files(
    place: dict[str, str], sentence: str
) -> None:
    adapter = {"name": "rows", "window": "cq/outbound", "table": {"table": "result", **place}}
    with pytest.raises(ValidationError, match=sentence):
        deployment(adapters={"outputs": [adapter]})


def test_a_table_of_a_server_needs_no_volume() -> None:
    table = {"table": "result", "url": "postgresql://u@h/d"}
    adapter = {"name": "rows", "window": "cq/outbound", "table": table}
    (made,) = deployment(adapters={"outputs": [adapter]}).spec.adapters.every
    assert json.loads(made.text())["table"] == table

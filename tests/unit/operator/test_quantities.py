"""Requests, limits and heaps."""

from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from espha.jvm import CONCURRENT
from espha_operator.api.quantities import Resources, Usual, amount
from espha_operator.resources import engines, kafka, zookeeper
from unit.operator.samples import MODEL, deployment

ROOT = Path(__file__).parents[3]
USUAL = Usual("50m", "512Mi", "1536Mi", least="256Mi", scratch="1Gi")


@pytest.mark.parametrize(
    ("given", "requests", "limits"),
    [
        ({}, {"cpu": "50m", "memory": "512Mi"}, {"memory": "1536Mi"}),
        ({"requests": {"memory": "2Gi"}}, {"cpu": "50m", "memory": "2Gi"}, {"memory": "2Gi"}),
        ({"requests": {"memory": "1Gi"}}, {"cpu": "50m", "memory": "1Gi"}, {"memory": "1536Mi"}),
        ({"limits": {"memory": "256Mi"}}, {"cpu": "50m", "memory": "256Mi"}, {"memory": "256Mi"}),
        (
            {"limits": {"cpu": "20m"}},
            {"cpu": "20m", "memory": "512Mi"},
            {"cpu": "20m", "memory": "1536Mi"},
        ),
        (
            {"requests": {"cpu": 2}, "limits": {"cpu": 4, "memory": "4Gi"}},
            {"cpu": "2", "memory": "512Mi"},
            {"cpu": "4", "memory": "4Gi"},
        ),
    ],
    ids=["nothing", "request above", "request below", "limit below", "cpu limit", "both"],
)
def test_the_other_half_makes_way(given: Any, requests: Any, limits: Any) -> None:
    made = Resources.model_validate(given).merged(USUAL)
    assert made == {"requests": requests, "limits": limits}
    for name, limit in made["limits"].items():
        assert amount(made["requests"][name]) <= amount(limit)


@pytest.mark.parametrize("wrong", [0, -1, "0", "-1", "abc", "1Zi", ""])
def test_what_is_no_amount_is_refused(wrong: Any) -> None:
    with pytest.raises(ValidationError):
        Resources.model_validate({"requests": {"cpu": wrong}})


def environment(objects: list[dict[str, Any]]) -> dict[str, str]:
    made = next(one for one in objects if one["kind"] == "StatefulSet")
    env = made["spec"]["template"]["spec"]["containers"][0]["env"]
    return {one["name"]: one["value"] for one in env if "value" in one}


@pytest.mark.parametrize(
    ("spec", "heap"),
    [
        ({}, 270),
        ({"resources": {"limits": {"memory": "2Gi"}}}, 614),
        ({"resources": {"requests": {"memory": "2Gi"}}}, 614),
        ({"heap": "400Mi"}, 400),
        ({"heap": "3Gi", "resources": {"limits": {"memory": "8Gi"}}}, 3072),
    ],
)
def test_a_brokers_heap_follows_its_memory(spec: Any, heap: int) -> None:
    env = environment(kafka.kafka(deployment(kafka=spec)))
    assert env["KAFKA_HEAP_OPTS"].startswith(f"-Xms{heap}m -Xmx{heap}m ")
    assert ("G1GC" in env.get("KAFKA_JVM_OPTS", "")) == (heap >= 1024)


def test_zookeepers_heap_follows_its_memory() -> None:
    assert "-Xmx96m" in environment(zookeeper.zookeeper(deployment()))["ZK_HEAP_OPTS"]
    large = {"resources": {"limits": {"memory": "1Gi"}}}
    env = environment(zookeeper.zookeeper(deployment(zookeeper=large)))
    assert "-Xmx307m" in env["ZK_HEAP_OPTS"]


@pytest.mark.parametrize(
    ("spec", "heap"),
    [
        ({}, "512"),
        ({"resources": {"limits": {"memory": "1Gi"}}}, "512"),
        ({"resources": {"limits": {"memory": "3Gi"}}}, "1024"),
        ({"resources": {"limits": {"memory": "64Gi"}}}, "2048"),
        ({"resources": {"limits": {"memory": "64Gi"}}, "heap": "8Gi"}, "8192"),
    ],
)
def test_an_engines_heap_is_a_part_of_its_memory(spec: Any, heap: str) -> None:
    env = environment(engines.engines(deployment(engines=spec), MODEL))
    assert env["ESPHA_JVM_HEAP_MIB"] == heap


def test_options_of_the_user_come_with_ours_and_choose_the_collector() -> None:
    options = ["-XX:+UseZGC", "-Dcom.example=1"]
    spec = {"jvmOptions": options, "heap": "2Gi", "resources": {"limits": {"memory": "4Gi"}}}
    env = environment(kafka.kafka(deployment(kafka=spec)))
    assert env["KAFKA_JVM_OPTS"] == "-XX:+UseZGC -Dcom.example=1"


def test_brokers_in_images_have_the_collector_of_local_ones() -> None:
    """It does not stop them for a quarter of a second now and then."""
    start = (ROOT / "images/kafka/start/kafka-start").read_text()
    assert f'collector="{" ".join(CONCURRENT)}"' in start

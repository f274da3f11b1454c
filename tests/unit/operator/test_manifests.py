"""The example is a valid resource, and its model is the sample model."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from espha.model import model_digest
from espha.reader import read_project
from espha_operator.api.deployment import ModelFacts
from espha_operator.api.images import Images
from espha_operator.reconcile.models import check, parse
from espha_operator.status.facts import Verdict
from unit.operator.samples import deployment

MANIFESTS = Path(__file__).parents[3] / "manifests"
MODEL = (MANIFESTS / "models" / "ha-project.xml").read_text()


def documents(name: str) -> list[dict[str, Any]]:
    return list(yaml.safe_load_all((MANIFESTS / name).read_text()))


def test_the_example_has_the_sample_model() -> None:
    inline = documents("esp-ha.yaml")[1]["spec"]["model"]["inline"]
    assert model_digest(read_project(inline)) == model_digest(read_project(MODEL))


def test_the_example_gives_the_topics_of_the_demo() -> None:
    resource = documents("esp-ha.yaml")[1]
    resource["metadata"] |= {"namespace": "shop", "uid": "u", "generation": 1}
    made = parse(resource, Images())
    assert not isinstance(made, Verdict)
    facts = check(made.spec.model.inline or "", "model", made)
    assert isinstance(facts, ModelFacts)
    assert facts.prefix == "HAtopic1_31415"
    assert sorted(facts.topics) == [
        "HAtopic1_31415.E",
        "HAtopic1_31415.HA_Project.cq.memory.I",
        "HAtopic1_31415.HA_Project.cq.outbound.O",
        "HAtopic1_31415.M",
        "HAtopic1_31415.P",
        "HAtopic1_31415.warm-up",
    ]


def test_the_producer_uses_the_volume_and_image_of_the_example() -> None:
    pod = documents("sample-producer.yaml")[0]["spec"]["template"]["spec"]
    assert pod["volumes"][0]["persistentVolumeClaim"]["claimName"] == "demo-data"
    assert pod["containers"][0]["image"] == Images().engine_image


@pytest.mark.parametrize(
    ("xml", "words"),
    [
        ("<project name='p'>\n<contqueries>", ["spec.model.inline", "line 2"]),
        (MODEL.replace("window-functional", "window-train"), ["window-train", "outbound", "line"]),
        (MODEL.replace('target="outbound"', 'target="nowhere"'), ["edge", "nowhere", "line"]),
    ],
    ids=["not well-formed", "unsupported window", "edge to nowhere"],
)
def test_a_bad_model_is_named_with_element_and_line(xml: str, words: list[str]) -> None:
    verdict = check(xml, "spec.model.inline", deployment())
    assert isinstance(verdict, Verdict)
    assert (verdict.ok, verdict.reason) == (False, "InvalidModel")
    assert [word for word in words if word not in verdict.message] == []


def test_an_adapter_for_a_window_that_the_model_has_not() -> None:
    adapters = {
        "outputs": [
            {
                "name": "result",
                "window": "cq/sum20",
                "volume": {"claimName": "d"},
                "file": {"path": "/data/x.csv"},
            }
        ]
    }
    verdict = check(MODEL, "model", deployment(adapters=adapters))
    assert isinstance(verdict, Verdict)
    assert verdict.reason == "UnknownWindow"
    assert 'spec.adapters.outputs "result"' in verdict.message
    assert "cq/outbound" in verdict.message

"""Deployments and facts for the tests of the operator."""

from typing import Any

from espha.protocol.states import EngineState
from espha_operator.api import Spec
from espha_operator.api.deployment import Deployment, ModelFacts
from espha_operator.api.images import Images
from espha_operator.status.facts import Facts, SetFacts, TopicFacts, Verdict
from espha_operator.status.reasons import Reason
from espha_operator.status.storage import DiskFacts
from support.status import MODEL_DIGEST, engine_status

MODEL = ModelFacts(
    xml="<project/>",
    project="HA_Project",
    digest=MODEL_DIGEST,
    prefix="HAtopic1_31415",
    topics=(
        "HAtopic1_31415.HA_Project.cq.memory.I",
        "HAtopic1_31415.HA_Project.cq.outbound.O",
        "HAtopic1_31415.M",
        "HAtopic1_31415.E",
    ),
    inputs=("cq/memory",),
    outputs=("cq/outbound",),
)
BROKEN = Verdict(Reason.INVALID_MODEL, 'model.xml: line 3: <window-join name="x">: not supported')
ADAPTERS = {
    "inputs": [
        {
            "name": "memory",
            "window": "cq/memory",
            "volume": {"claimName": "demo-data"},
            "file": {
                "path": "/data/memory.csv",
                "growing": True,
                "headerLines": 1,
                "autogenField": False,
                "opcode": False,
                "flags": False,
            },
        }
    ],
    "outputs": [
        {
            "name": "result",
            "window": "cq/outbound",
            "volume": {"claimName": "demo-data"},
            "file": {"path": "/data/result.csv", "header": "full"},
        }
    ],
}
FULL = {"topics": {"prefix": "HAtopic1_31415"}, "adapters": ADAPTERS}


def deployment(**spec: Any) -> Deployment:
    """The deployment `demo` with a model, and what the test adds to its spec."""
    parsed = Spec.model_validate({"model": {"inline": "<project/>"}, **spec})
    return Deployment("demo", "shop", "uid-1", 7, parsed, Images())


def healthy(**changes: Any) -> Facts:
    """Facts of a deployment where everything is well, with what the test changes."""
    sets = {name: SetFacts(3, 3, 3) for name in ("demo-zookeeper", "demo-kafka", "demo-engine")}
    sets |= {"demo-input-memory": SetFacts(2, 2, 2), "demo-output-result": SetFacts(1, 1, 1)}
    engines = (
        engine_status("demo-engine-0"),
        engine_status("demo-engine-1", EngineState.ACTIVE),
        engine_status("demo-engine-2"),
    )
    facts = Facts(
        deployment(**FULL), MODEL, sets, 3, engines, TopicFacts(brokers=3), disks=DiskFacts()
    )
    return facts.replace(**changes)


def without(*names: str) -> dict[str, SetFacts]:
    """The StatefulSets of a healthy deployment without some."""
    return {key: value for key, value in healthy().sets.items() if key not in names}

"""Golden files, which are what builders make, as YAML that people read; and a played cluster."""

import copy
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from espha.protocol.states import EngineState
from espha_operator.reconcile import brokers, models, observe, reconciler, roller, topic_view
from espha_operator.reconcile.rolling import Brokers
from support.status import engine_status
from unit.operator import samples
from unit.operator.memory import Disks, Keeper, MemoryCluster, Play, at_once

GOLDEN = Path(__file__).parent / "golden"


class _Readable(yaml.SafeDumper):
    """YAML without anchors, and with texts of several lines as such."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    style = "|" if "\n" in text else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Readable.add_representer(str, _text)


@pytest.fixture
def golden() -> Callable[[str, list[dict[str, Any]]], None]:
    """Compares objects with a golden file; ESPHA_GOLDEN=write makes the file anew."""

    def compare(name: str, objects: list[dict[str, Any]]) -> None:
        path = GOLDEN / f"{name}.yaml"
        if os.environ.get("ESPHA_GOLDEN") == "write":
            path.write_text(yaml.dump_all(objects, Dumper=_Readable, sort_keys=False, width=100))
        assert objects == list(yaml.safe_load_all(path.read_text()))

    return compare


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> MemoryCluster:
    monkeypatch.setattr(reconciler, "TopicKeeper", Keeper)
    monkeypatch.setattr(topic_view, "submit", at_once)
    monkeypatch.setattr(reconciler, "DiskKeeper", Disks)
    for name in ("read", "check"):
        monkeypatch.setattr(
            models, name, lambda xml, *_: samples.BROKEN if "bad" in xml else samples.MODEL
        )
    monkeypatch.setattr(observe, "ask_zookeeper", lambda pod: "follower")
    monkeypatch.setattr(roller, "submit", at_once)
    monkeypatch.setattr(brokers, "look", lambda *_: Brokers(alive=(0, 1, 2), controller=1))
    monkeypatch.setattr(
        observe,
        "ask_engine",
        lambda pod: engine_status(
            pod.name,
            EngineState.ACTIVE if pod.name.endswith("-0") else EngineState.STANDBY,
            epoch=1,
        ),
    )
    made = MemoryCluster()
    made.objects["EspHaDeployment", "demo"] = {
        "metadata": {"name": "demo", "namespace": "shop", "uid": "uid-1", "generation": 1},
        "spec": {"model": {"inline": "<project/>"}, **copy.deepcopy(samples.FULL)},
    }
    return made


@pytest.fixture
def steps(cluster: MemoryCluster) -> Play:
    return Play(cluster)

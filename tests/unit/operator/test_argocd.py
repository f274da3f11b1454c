"""The health script for Argo CD, run by the version of Lua that Argo CD has."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from lupa.lua51 import LuaRuntime

from espha.protocol.states import EngineState
from espha_operator.api import Status
from espha_operator.status.build import build, failed
from espha_operator.status.facts import Facts, Promise
from support.status import engine_status
from unit.operator.samples import BROKEN, MODEL, healthy, without

SCRIPT = (Path(__file__).parents[3] / "manifests" / "argocd" / "health.lua").read_text()
NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
CHANGED = {"demo-engine": Promise("another", "espha/engine:2")}


def health(resource: dict[str, Any]) -> tuple[str, str]:
    lua = LuaRuntime(unpack_returned_tuples=True, register_eval=False)
    lua.globals().obj = lua.table_from(resource, recursive=True)
    answer = lua.execute(SCRIPT)
    return answer["status"], answer["message"]


def resource(status: Status, generation: int = 7) -> dict[str, Any]:
    shown = status.model_dump(by_alias=True, exclude_none=True)
    return {"metadata": {"name": "demo", "generation": generation}, "status": shown}


def of(facts: Facts) -> tuple[str, str]:
    return health(resource(build(facts, Status(), NOW)))


REPLAYING = engine_status("demo-engine-0", EngineState.REPLAYING, in_sync=False)


@pytest.mark.parametrize(
    ("facts", "status", "message"),
    [
        (healthy(), "Healthy", "demo-engine-1 is active."),
        (healthy(engines=(*healthy().engines[1:], REPLAYING)), "Healthy", "demo-engine-1"),
        (healthy(promised=CHANGED), "Progressing", "demo-engine is not yet what the spec says."),
        (healthy(sets=without("demo-engine"), engines=()), "Progressing", "not been started"),
        (healthy(engines=(healthy().engines[0],)), "Degraded", "No engine is active."),
        (healthy(model=BROKEN, last_good=MODEL), "Degraded", "line 3"),
        (healthy(error="StatefulSet: no"), "Degraded", "StatefulSet: no"),
        (healthy(paused=True), "Suspended", "changes nothing"),
    ],
)
def test_health(facts: Facts, status: str, message: str) -> None:
    seen = of(facts)
    assert seen[0] == status
    assert message in seen[1]


def test_a_spec_that_nobody_has_seen_yet_is_progress() -> None:
    well = build(healthy(), Status(), NOW)
    assert health(resource(well, generation=8))[0] == "Progressing"
    assert health({"metadata": {"generation": 1}})[0] == "Progressing"
    assert health(resource(Status(observed_generation=7)))[0] == "Progressing"


def test_an_operator_that_fails_is_told() -> None:
    well = build(healthy(), Status(), NOW)
    assert health(resource(failed(well, "KeyError: 'x'", 7, NOW))) == ("Degraded", "KeyError: 'x'")


def test_the_status_of_a_version_without_these_conditions_is_no_error() -> None:
    status = build(healthy(), Status(), NOW)
    known = [one for one in status.conditions if one.type == "Ready"]
    assert health(resource(status.model_copy(update={"conditions": known})))[0] == "Progressing"

"""What the status says of adapters, and to which pod a Service leads."""

from datetime import UTC, datetime

import pytest

from espha.protocol.states import EngineState
from espha.protocol.status import InputProgress, Lag, OutputProgress, ReplicaStatus
from espha_operator.api import Status
from espha_operator.api.status import AdapterStatus
from espha_operator.reconcile import observe
from espha_operator.reconcile.adapter_view import AGAIN, AdapterView
from espha_operator.reconcile.observe import Pod
from espha_operator.status.adapters import adapters, roles
from espha_operator.status.build import build
from espha_operator.status.checks import adapters_ready
from support.status import adapter_status
from unit.operator.memory import Clock, MemoryCluster, Play, status
from unit.operator.samples import deployment, healthy

STANDBY = EngineState.STANDBY
INPUT = InputProgress(rows=70, rejected=2, position="memory.csv, line 71, byte 900")
OUTPUT = OutputProgress(rows=60, position="offset 61")
WELL = (
    adapter_status("demo-input-memory-0", STANDBY, progress=InputProgress(rows=0)),
    adapter_status("demo-input-memory-1", progress=INPUT.with_lag(Lag(12, "bytes"))),
    adapter_status("demo-output-result-0", progress=OUTPUT.with_lag(Lag(1, "records"))),
)


def test_each_adapter_has_its_role_position_rows_and_lag() -> None:
    made = build(healthy(adapters=WELL), Status(), datetime.now(UTC)).adapters
    assert made == [
        AdapterStatus(
            name="input-memory",
            active="demo-input-memory-1",
            standby=["demo-input-memory-0"],
            rows=70,
            rejected=2,
            position="memory.csv, line 71, byte 900",
            lag=12,
            lag_unit="bytes",
        ),
        AdapterStatus(
            name="output-result",
            active="demo-output-result-0",
            rows=60,
            rejected=0,
            position="offset 61",
            lag=1,
            lag_unit="records",
        ),
    ]


def test_what_nobody_tells_stays_as_it_was() -> None:
    first = adapters(healthy(adapters=WELL), None)
    assert adapters(healthy(adapters=None), first) == first
    between = adapters(healthy(adapters=WELL[:1]), first)
    assert between is not None
    assert (between[0].active, between[0].standby) == (None, ["demo-input-memory-0"])
    assert (between[0].rows, between[0].lag) == (70, 12)
    assert (between[1].active, between[1].position) == (None, "offset 61")


def test_the_last_error_is_the_newest_of_all_pods() -> None:
    told = (
        adapter_status("demo-input-memory-0", STANDBY, last_error_at=1_700_000_000.5),
        adapter_status("demo-input-memory-1", last_error_at=1_600_000_000.0),
    )
    made = adapters(healthy(adapters=told), None)
    assert made is not None
    assert (made[0].last_error, made[0].last_error_time) == (
        "error of demo-input-memory-0",
        "2023-11-14T22:13:20Z",
    )
    assert made[1].last_error is None


def test_what_is_wrong_now_is_in_the_condition() -> None:
    told = (WELL[0], adapter_status("demo-output-result-0", message="out.csv: disk full"))
    message = adapters_ready(healthy(adapters=told)).message
    assert message == "All 2 adapters run. demo-output-result-0: out.csv: disk full"


def test_a_status_of_an_older_operator_has_no_adapters() -> None:
    assert Status.read({"phase": "Ready"}).adapters is None
    written = build(healthy(adapters=WELL), Status(), datetime.now(UTC))
    read = Status.read(written.model_dump(by_alias=True, exclude_none=True))
    assert read.adapters == written.adapters


LISTENING = [{"name": "memory", "window": "cq/memory", "http": {"port": 8090}}]
LABELLED: dict[str, str | None] = {"demo-input-memory-0": "active", "demo-input-memory-1": None}


@pytest.mark.parametrize(
    ("told", "changed"),
    [
        (WELL, {"demo-input-memory-0": "standby", "demo-input-memory-1": "active"}),
        (WELL[:1], {"demo-input-memory-1": "standby"}),
        ((), {"demo-input-memory-1": "standby"}),
        (
            (
                adapter_status("demo-input-memory-0", znode="/b/s-b-0000000002"),
                adapter_status("demo-input-memory-1", znode="/b/s-a-0000000003"),
            ),
            {"demo-input-memory-0": "standby", "demo-input-memory-1": "active"},
        ),
    ],
    ids=["another is active", "none is active", "none answers", "two say so"],
)
def test_the_label_follows_the_active_pod_and_else_stays(
    told: tuple[ReplicaStatus, ...], changed: dict[str, str]
) -> None:
    facts = healthy(adapters=told, deployment=deployment(adapters={"inputs": LISTENING}))
    assert roles(facts, LABELLED) == changed


def test_pods_to_which_no_service_leads_have_no_label() -> None:
    assert roles(healthy(adapters=WELL), LABELLED) == {}


def test_the_label_is_there_before_the_service_and_moves_with_the_active_pod(
    cluster: MemoryCluster, steps: Play, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A Service that asks for a label that no pod has would lead nowhere."""
    cluster.objects["EspHaDeployment", "demo"]["spec"]["adapters"] = {"inputs": LISTENING}
    steps.until_quiet()
    pods = [f"demo-input-memory-{number}" for number in range(2)]
    labels = [cluster.objects["Pod", pod]["metadata"]["labels"] for pod in pods]
    for one in labels:
        del one["espha.dev/role"]
    del cluster.objects["Service", "demo-input-memory"]
    cluster.writes.clear()
    steps.clock.now += 60
    steps.step()
    made = cluster.writes.index("Service demo-input-memory")
    assert all(cluster.writes.index(f"patch Pod {pod}") < made for pod in pods)
    assert [one["espha.dev/role"] for one in labels] == ["active", "standby"]
    monkeypatch.setattr(
        observe,
        "ask_engine",
        lambda pod: adapter_status(
            pod.name, EngineState.ACTIVE if pod.name.endswith("-1") else STANDBY
        ),
    )
    steps.clock.now += 1
    steps.step()
    assert [one["espha.dev/role"] for one in labels] == ["standby", "active"]


def test_counts_alone_are_written_twice_a_minute(
    cluster: MemoryCluster, steps: Play, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [0]

    def ask(pod: Pod) -> ReplicaStatus:
        rows[0] += 1
        return adapter_status(pod.name, progress=InputProgress(rows=rows[0]))

    steps.until_quiet()
    real = observe.ask_engine
    monkeypatch.setattr(
        observe, "ask_engine", lambda pod: ask(pod) if "put" in pod.name else real(pod)
    )
    steps.clock.now += 120
    steps.step()
    cluster.writes.clear()
    for _ in range(120):
        steps.clock.now += 1
        steps.step()
    assert 3 <= cluster.writes.count("status") <= 4
    assert status(cluster)["adapters"][0]["rows"] > 20


def test_pairs_that_listen_are_asked_in_each_step_and_others_now_and_then(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[str] = []

    def ask(pod: Pod) -> ReplicaStatus | None:
        asked.append(pod.name)
        return adapter_status(pod.name)

    monkeypatch.setattr(observe, "ask_engine", ask)
    inputs = [
        {"name": "posts", "window": "cq/memory", "http": {"port": 8090}},
        {"name": "alone", "window": "cq/memory", "http": {"port": 8091}, "replicas": 1},
    ]
    made = deployment(adapters={"inputs": inputs})
    pods = [_pod("demo-input-posts", 0), _pod("demo-input-alone", 0)]
    clock = Clock()
    view = AdapterView(clock)
    assert [one.name for one in view.look(made, pods)] == [
        "demo-input-alone-0",
        "demo-input-posts-0",
    ]
    asked.clear()
    clock.now += 1
    assert len(view.look(made, pods)) == 2
    assert asked == ["demo-input-posts-0"]
    clock.now += AGAIN
    view.look(made, pods)
    assert len(asked) == 3


def test_a_pod_that_is_gone_or_another_one_is_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(observe, "ask_engine", lambda pod: adapter_status(pod.name))
    made = deployment()
    view = AdapterView(Clock())
    assert len(view.look(made, [_pod("demo-input-a", 0)])) == 1
    monkeypatch.setattr(observe, "ask_engine", lambda _: None)
    assert len(view.look(made, [_pod("demo-input-a", 0)])) == 1
    assert view.look(made, [_pod("demo-input-a", 0, "another")]) == ()
    assert view.look(made, []) == ()


def _pod(of: str, number: int, uid: str = "u") -> Pod:
    return Pod(f"{of}-{number}", "adapter", "10.0.0.1", None, uid=uid, set=of)

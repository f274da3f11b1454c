"""`kubectl apply` and at once `kubectl wait --for=condition=Ready`, twenty times.

A real API server and StatefulSet controller; no pod runs: stand-ins answer for the engines, on
addresses of the loopback device. As for `test_fifty_deployments`, ESPHA_BENCH_KUBECONFIG names
another API server than the local cluster's; it needs the CRD and no running operator, and no nodes.
"""

import contextlib
import json
import os
import subprocess
import sys
import threading
import time
import uuid
from collections import Counter
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from kubernetes import client, config
from kubernetes.client.exceptions import ApiException

from espha.model import model_digest
from espha.protocol.states import EngineState, SwitchoverReason
from espha.protocol.switchover import SwitchoverAnswer
from espha.reader import read_project
from espha_operator.api.names import HTTP_PORT
from support.status import engine_status
from tools.offline_cluster import clients

ROUNDS, ENGINES, NAME = int(os.environ.get("ESPHA_BENCH_COUNT", "20")), 3, "demo"
ROOT = Path(__file__).parents[2]
MODEL = """<project name="small"><contqueries><contquery name="cq"><windows>
<window-source name="in" insert-only="true"><schema><fields>
<field name="id" type="int64" key="true"/></fields></schema></window-source>
</windows></contquery></contqueries></project>"""
OPERATOR = """
from espha_operator import __main__ as operator
from espha_operator.reconcile import reconciler
from espha_operator.status.facts import TopicFacts
class Keeper:
    def __init__(self, bootstrap): pass
    def ensure(self, *_, **__): return TopicFacts(brokers=3)
reconciler.TopicKeeper = Keeper
operator.LIVENESS = "http://127.0.0.1:0/healthz"
operator.main()
"""
"""The operator as it is, but that topics are all there."""
DIGEST = model_digest(read_project(MODEL))
STARTS_S = 0.5
"""How long a played pod takes until it is ready."""


class Engines:
    """What the supervisors say, and who is active: the first one that is ready."""

    def __init__(self) -> None:
        self.ready: dict[str, float] = {}
        """Since when each pod that is there is ready."""
        self.active, self.epoch = "", 0
        self._before, self._planned = "", False
        self._lock = threading.Lock()

    def see(self, ready: dict[str, float]) -> None:
        """Take in which pods are ready; another one takes over where the active one has gone."""
        with self._lock:
            self.ready = ready
            if self.active not in ready and ready:
                self._lead(min(ready), planned=False)

    def hand_over(self, to: str) -> SwitchoverReason:
        """Make another one active."""
        with self._lock:
            if to not in self.ready:
                return SwitchoverReason.NOT_A_CANDIDATE
            self._lead(to, planned=True)
            return SwitchoverReason.BEGUN

    def _lead(self, name: str, *, planned: bool) -> None:
        self._before, self._planned = self.active, planned
        self.active, self.epoch = name, self.epoch + 1

    def status(self, name: str) -> bytes:
        """Return what one of them says."""
        state = EngineState.ACTIVE if name == self.active else EngineState.STANDBY
        told = engine_status(name, state, epoch=self.epoch, model_digest=DIGEST)
        assert told.engine is not None
        facts = {"taken_from": self._before, "taken_as_planned": self._planned}
        progress = told.engine.model_copy(update=facts)
        return told.model_copy(update={"progress": progress}).model_dump_json().encode()


def supervisor(engines: Engines, name: str, address: str) -> ThreadingHTTPServer:
    """Answer for an engine."""

    class Supervisor(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._say(200 if name in engines.ready else 503, engines.status(name))

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            reason = engines.hand_over(body["to"])
            told = SwitchoverAnswer(reason=reason, message=reason.sentence)
            self._say(reason.code, told.model_dump_json().encode())

        def _say(self, code: int, body: bytes) -> None:
            with contextlib.suppress(BrokenPipeError):  # whoever asked is tired of waiting
                self.send_response(code)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Stay silent."""

    server = ThreadingHTTPServer((address, HTTP_PORT), Supervisor)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server


class Scene:
    """A deployment whose pods are played."""

    def __init__(self, kubeconfig: str, folder: Path) -> None:
        """Connect, and answer for the engines."""
        self.kubeconfig, self.namespace = kubeconfig, f"wait-{uuid.uuid4().hex[:5]}"
        self.core = client.CoreV1Api(config.new_client_from_config(kubeconfig))
        self.core.create_namespace({"metadata": {"name": self.namespace}})
        self.engines = Engines()
        self.addresses = {f"{NAME}-engine-{n}": f"127.8.0.{n + 1}" for n in range(ENGINES)}
        self.servers = [supervisor(self.engines, *one) for one in self.addresses.items()]
        self._over = threading.Event()
        self._since: dict[str, float] = {}
        self._kubelet = threading.Thread(target=self._play, daemon=True)
        self._kubelet.start()
        paths = os.pathsep.join(str(ROOT / one) for one in ("engine", "operator", "tests", "."))
        variables = {"KUBECONFIG": kubeconfig, "PYTHONPATH": paths}
        variables |= {"ESPHA_NAMESPACE": self.namespace, "ESPHA_WATCH_NAMESPACES": self.namespace}
        log = (folder / "operator.log").open("wb")
        self.operator = subprocess.Popen(
            [sys.executable, "-c", OPERATOR], env=os.environ | variables, stdout=log, stderr=log
        )

    def kubectl(self, *arguments: str, stdin: str | None = None, limit: float = 320) -> str:
        """Run kubectl in the namespace."""
        program = [str(clients.binaries() / "kubectl"), "-n", self.namespace, *arguments]
        done = subprocess.run(
            program, env=os.environ | {"KUBECONFIG": self.kubeconfig}, input=stdin, text=True,
            capture_output=True, timeout=limit, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        return done.stdout

    def apply(self, image: str) -> None:
        """Apply the deployment with an image."""
        spec = {
            "model": {"inline": MODEL},
            "engines": {"replicas": ENGINES, "image": image},
            "kafka": {"external": {"bootstrapServers": ["kafka.invalid:9092"]}},
            "zookeeper": {"external": {"servers": ["zookeeper.invalid:2181"]}},
            "topics": {"prefix": self.namespace},
        }
        body = {"apiVersion": "espha.dev/v1alpha1", "kind": "EspHaDeployment", "spec": spec}
        self.kubectl("apply", "-f", "-", stdin=json.dumps({**body, "metadata": {"name": NAME}}))

    def pods(self) -> list[Any]:
        """Return the engines' pods."""
        return list(self.core.list_namespaced_pod(self.namespace).items)

    def _play(self) -> None:
        """Do what the kubelets would."""
        while not self._over.wait(0.1):
            try:
                self._turn()
            except ApiException as error:  # a pod has gone meanwhile
                if error.status not in (404, 409):
                    raise

    def _turn(self) -> None:
        ready, now = {}, time.monotonic()
        for pod in self.pods():
            name, uid = pod.metadata.name, pod.metadata.uid
            began = self._since.setdefault(uid, now)
            told = {one.type: one.status for one in pod.status.conditions or []}
            well = now - began > STARTS_S
            if well:
                ready[name] = began
            wanted = "True" if well else "False"
            if told.get("Ready") != wanted:
                self._tell(name, wanted)
        self.engines.see(ready)

    def _tell(self, name: str, ready: str) -> None:
        address = self.addresses[name]
        condition = {"type": "Ready", "status": ready, "lastTransitionTime": "2026-01-01T00:00:00Z"}
        status = {"phase": "Running", "podIP": address, "podIPs": [{"ip": address}]}
        change = {"status": {**status, "conditions": [condition]}}
        self.core.patch_namespaced_pod_status(name, self.namespace, change)

    def end(self) -> None:
        """Stop what was started, and delete what was made."""
        self.operator.terminate()
        self.operator.wait(30)
        self._over.set()
        self._kubelet.join()
        for server in self.servers:
            server.shutdown()
        self.core.delete_namespace(self.namespace)


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    made = Scene(os.environ.get("ESPHA_BENCH_KUBECONFIG") or str(clients.kubeconfig()), tmp_path)
    yield made
    made.end()


@pytest.mark.timeout(3600)
def test_wait_returns_when_the_last_pod_has_the_new_image(scene: Scene) -> None:
    """And a roll-out costs one take-over."""
    ready = ("wait", "--for=condition=Ready", f"espha/{NAME}", "--timeout=5m")
    scene.apply("espha/engine:0")
    scene.kubectl(*ready)
    epoch = scene.engines.epoch
    for number in range(1, ROUNDS + 1):
        image, began = f"espha/engine:{number}", time.monotonic()
        scene.apply(image)
        scene.kubectl(*ready)
        found = [one.spec.containers[0].image for one in scene.pods()]
        assert found == [image] * ENGINES, f"round {number}"
        assert len(scene.engines.ready) == ENGINES, f"round {number}"
        print(f"round {number}: {time.monotonic() - began:.1f} s")
    assert scene.engines.epoch == epoch + ROUNDS
    listed = json.loads(scene.kubectl("get", "events", "-o", "json"))["items"]
    told = Counter(one["reason"] for one in listed)
    print(told)
    assert told["RolloutStarted"] > 1
    assert told["RolloutFinished"] > 1
    assert told["TakenOver"] > 1
    assert told["FailedOver"] == 0

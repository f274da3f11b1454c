"""`kubectl wait` returns when it should: all pods run what was applied, and the service goes on."""

import json
import os
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise

import pytest

from day_two.live import Live, retag
from tools.offline_cluster import clients

ROUNDS = int(os.environ.get("ESPHA_ROLL_OUTS", "3"))
"""How often the engines get a new image."""

pytestmark = [pytest.mark.day_two, pytest.mark.timeout(900 + 300 * ROUNDS)]


def images(live: Live) -> set[str]:
    """Return the images of the engines' pods, those that go included."""
    chosen = "app.kubernetes.io/component=engine"
    listed = json.loads(live.kubectl("get", "pods", "-l", chosen, "-o", "json"))["items"]
    assert len(listed) == 3
    return {one["spec"]["containers"][0]["image"] for one in listed}


@contextmanager
def watching(live: Live) -> Iterator[list[tuple[str, float]]]:
    """Note what `Available` is, one after the other, as often as it changes, and when (s)."""
    path = '{.status.conditions[?(@.type=="Available")].status}{"\\n"}'
    program = clients.binaries() / "kubectl"
    asked = [str(program), "-n", live.namespace, "get", "espha", "demo", "--watch", "-o"]
    seen: list[tuple[str, float]] = []
    with subprocess.Popen(
        [*asked, f"jsonpath={path}"], stdout=subprocess.PIPE, text=True, env=clients.environment()
    ) as process:

        def read() -> None:
            for line in process.stdout or ():
                if not seen or seen[-1][0] != line.strip():
                    seen.append((line.strip(), time.monotonic()))

        reader = threading.Thread(target=read, daemon=True)
        reader.start()
        try:
            yield seen
        finally:
            process.terminate()
            reader.join()


def away_s(seen: list[tuple[str, float]]) -> float:
    """Return for how long `Available` was something else than True, until it was True again."""
    return sum(end - at for (status, at), (_, end) in pairwise(seen) if status != "True")


def test_wait_returns_when_the_last_pod_has_the_new_image(
    live: Live, capsys: pytest.CaptureFixture[str]
) -> None:
    """As soon as it is applied, and each time; of the service a roll-out takes one switchover.

    That is to take two seconds at most. A machine on which four nodes share two cores may need
    more, so the time is printed.
    """
    live.wait_ready()
    for number in range(ROUNDS):
        image = retag(f"wait-{number}")["engines"]
        before, started = live.take_overs, len(live.events("RolloutStarted"))
        with watching(live) as available:
            live.patch({"engines": {"image": image}})
            live.kubectl("wait", "--for=condition=Ready", "espha/demo", "--timeout=5m", limit=320)
            assert images(live) == {image}
        with capsys.disabled():
            print(f"\nroll-out {number}: Available was not True for {away_s(available):.1f} s")
        assert [status for status, _ in available] in (["True"], ["True", "False", "True"])
        assert live.take_overs == before + 1
        assert len(live.events("RolloutStarted")) == started + 1
        assert live.status()["phase"] == "Ready"


def test_a_failover_is_told_in_an_event(live: Live) -> None:
    """Who, from whom, why, and for how long."""
    live.wait_ready()
    told, victim = len(live.events("FailedOver")), live.active
    live.signal(victim, "KILL")  # whoever deletes a pod, even by force, has it hand over
    live.wait(lambda: len(live.events("FailedOver")) > told, "an Event")
    said = live.events("FailedOver")[-1]
    assert f"has taken over from {victim}" in said
    assert "ms between the last commit before and the first one after" in said
    live.wait_ready()


def test_a_pause_keeps_what_somebody_changes(live: Live) -> None:
    """And what was wanted meanwhile is done after it."""
    live.wait_ready()
    live.kubectl("annotate", "espha", "demo", "espha.dev/paused=true")
    live.wait(lambda: live.status()["phase"] == "Paused", "the pause is seen")
    live.kubectl("delete", "service", "demo-active")
    live.patch({"engines": {"replicas": 2}})
    live.kubectl("wait", "--for=condition=Ready=false", "espha/demo", "--timeout=1m")
    services = live.kubectl("get", "services", "-o", "name").split()
    assert "service/demo-active" not in services
    assert len(images(live)) == 1, "three engines still run"
    live.kubectl("annotate", "espha", "demo", "espha.dev/paused-")
    live.kubectl("wait", "--for=condition=Ready", "espha/demo", "--timeout=3m", limit=200)
    assert "demo-engine-2" not in live.pods()
    assert "service/demo-active" in live.kubectl("get", "services", "-o", "name").split()
    live.patch({"engines": {"replicas": 3}})
    live.wait_ready()


def test_nothing_was_lost_in_all_that(live: Live) -> None:
    """The last test of this module: the rows end."""
    report = live.verify()
    print(report)
    assert report["ok"], report["complaints"]
    assert live.counts()["output"][0] == report["sent"]

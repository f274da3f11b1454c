"""The fault in a change of the model: the active engine dies when the order log goes over."""

import contextlib
import time
from collections.abc import Callable
from random import Random

from chaos.site import LOOK_S, wait_for_successor
from chaos.stroke import Stroke
from chaos.trial import Trial
from support.model_change import ask, digest, give
from support.replicas import LIMIT_S
from support.servers import wait_until

_ASK_S = 1.0
"""So often the switch is asked for once more, where it may have died with who was asked."""


def model_change(trial: Trial, chance: Random) -> Callable[[], Stroke]:
    """Have the order log go over to another model, and kill who is to say so 0 to 100 ms later.

    The other model has another project's name, and empty state. Either it leads, or the old one
    leads once more and is asked again; what was left open must not be on the topics.
    """
    assert trial.model.own_topics, "another model needs one that names its topics: plain"
    pod = trial.active()
    chosen = chance.choice(trial.standbys())
    others = [each for each in trial.pods if each is not pod]
    name = f"plain{chance.randrange(1_000_000)}"
    model = trial.model.write(trial.folder, trial.id, name)
    wanted = digest(model.read_text(encoding="utf-8"))
    give(chosen, model)
    wait_until(lambda: chosen.is_in("shadow"), LIMIT_S, f"{chosen.name} in the shadow", LOOK_S)
    pause = chance.uniform(0, 0.1)

    def strike() -> Stroke:
        code, answer = ask(pod, "switch", wanted)
        assert code == 202, f"{pod.name} does not go over to {name}: {answer}"
        time.sleep(pause)
        pod.kill_pod()

        def mend() -> None:
            wait_for_successor(others)
            for each in trial.pods:  # whoever is made anew, now or by a later fault
                each.environment["ESPHA_MODEL"] = str(model)
            pod.stop()
            pod.start()
            wait_until(lambda: _all_run(trial, wanted), LIMIT_S, f"all run {name}", _ASK_S)

        detail = f"to {name} on {chosen.name}, {pause * 1000:.0f} ms apart"
        return Stroke(pod.name, mend, detail)

    return strike


def _all_run(trial: Trial, wanted: str) -> bool:
    """Tell whether all run a model, in sync; ask for it once more where another one leads."""
    statuses = [pod.status() for pod in trial.pods]
    for pod, told in zip(trial.pods, statuses, strict=True):
        if told.get("state") == "active" and told.get("model_digest") != wanted:
            with contextlib.suppress(OSError):  # it may have just ended
                ask(pod, "switch", wanted)
    return all(told.get("in_sync") and told.get("model_digest") == wanted for told in statuses)

"""Whether Kafka answers this pod, and whether it answers others.

An active engine that cannot reach Kafka keeps its ZooKeeper session, so nobody takes over. Its
supervisor therefore asks Kafka ten times a second. When no answer comes any more, it asks the other
supervisors: if Kafka answers one that is in step, this engine is the one that is cut off, and has
to go; if it answers nobody, a failover would not help.
"""

import http.client
import threading
from concurrent.futures import Future, ThreadPoolExecutor

from confluent_kafka.admin import AdminClient

from espha.runtime.log import CLIENT_TUNING
from espha.runtime.patience import Patience
from espha.runtime.peers import addresses, ask_status

ANSWERED = "kafka_answers"
"""What a supervisor's status says about it: true or false."""
_ASK_S = 0.1
_REQUEST_S = 1.0
_PEER_S = 0.3


class Reach:
    """Asks Kafka from a thread of its own; any broker may answer."""

    def __init__(self, bootstrap: str, silent_ms: int) -> None:
        """Call Kafka silent when no question was answered for `silent_ms`."""
        # A broker that is gone is what this is about, and no news to the log.
        self._admin = AdminClient({**CLIENT_TUNING, "bootstrap.servers": bootstrap, "log_level": 2})
        self._patience = Patience(silent_ms / 1000, _ASK_S)
        self._stopped = threading.Event()
        threading.Thread(target=self._run, name="reach", daemon=True).start()

    @property
    def answers(self) -> bool:
        """Whether Kafka has answered lately."""
        return not self._patience.over

    def stop(self) -> None:
        """Ask no more."""
        self._stopped.set()

    def _run(self) -> None:
        while not self._stopped.wait(_ASK_S):
            self._patience.tick()
            self._admin.describe_cluster(request_timeout=_REQUEST_S).add_done_callback(self._heard)

    def _heard(self, answer: "Future[object]") -> None:
        if answer.exception() is None:
            self._patience.heard()


def others_reach_kafka(peers: str) -> bool:
    """Say whether Kafka answers another engine that could take over.

    Args:
        peers: where supervisors are, "host:port,…"; this one may be among them.
    """
    listed = addresses(peers)
    if not listed:
        return False
    with ThreadPoolExecutor(len(listed)) as pool:
        return any(pool.map(_could_take_over, listed))


def _could_take_over(address: str) -> bool:
    try:
        status = ask_status(address, _PEER_S)
    except (OSError, http.client.HTTPException, ValueError):
        return False
    return bool(status.get("in_step") and status.get(ANSWERED))

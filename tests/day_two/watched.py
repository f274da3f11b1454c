"""What a watch on pods sees while they come and go."""

import threading
from typing import Any

from kubernetes import client, config, watch

from espha.local.waiting import wait_until
from tools.offline_cluster import clients


class Watched:
    """What a watch on the pods has seen: how many of a set were not ready at the same time."""

    def __init__(self, namespace: str, sets: dict[str, int]) -> None:
        """Watch the pods of these StatefulSets, of which so many are wanted."""
        self._wanted = {f"{one}-{number}" for one, count in sets.items() for number in range(count)}
        self._ready: set[str] = set()
        self.away: frozenset[str] = frozenset()
        self.most: frozenset[str] = frozenset()
        """The largest group that was not ready at one moment."""
        self.replaced: list[str] = []
        """Pods that were made anew, in order."""
        self._uids: dict[str, str] = {}
        self._complete = threading.Event()
        self._api = client.CoreV1Api(config.new_client_from_config(str(clients.kubeconfig())))
        self._watch = watch.Watch()
        self._thread = threading.Thread(target=self._follow, args=(namespace,), daemon=True)
        self._thread.start()
        wait_until(self._complete.is_set, 60, f"{', '.join(sets)} are ready before it begins")

    def _follow(self, namespace: str) -> None:
        listed = self._api.list_namespaced_pod
        for event in self._watch.stream(listed, namespace):
            self._take(event["type"], event["object"])

    def _take(self, what: str, pod: Any) -> None:
        name = pod.metadata.name
        if name not in self._wanted:
            return
        conditions = {one.type: one.status for one in pod.status.conditions or []}
        ready = conditions.get("Ready") == "True" and pod.metadata.deletion_timestamp is None
        (self._ready.add if ready and what != "DELETED" else self._ready.discard)(name)
        known = self._uids.get(name)
        if known not in (None, pod.metadata.uid) and name not in self.replaced:
            self.replaced.append(name)
        self._uids[name] = pod.metadata.uid
        self.away = frozenset(self._wanted - self._ready)
        if not self.away:
            self._complete.set()
        if self._complete.is_set() and len(self.away) > len(self.most):
            self.most = self.away

    def stop(self) -> None:
        """End the watch."""
        self._watch.stop()

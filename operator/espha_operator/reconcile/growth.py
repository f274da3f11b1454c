"""Volumes that are to be larger.

Kubernetes lets a claim grow, where its storage class does, but never the template of claims in a
StatefulSet. So the claims are changed one by one; then the StatefulSet is deleted without its pods,
and made anew with the new template. It takes the pods over as they are: none restarts. Where a
driver enlarges no file system that is in use, pods are restarted for it, as in any roll-out.
"""

import copy
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field

from kubernetes.client.exceptions import ApiException

from espha_operator.api.quantities import amount
from espha_operator.reconcile.cluster import Cluster, reason
from espha_operator.resources.meta import Object
from espha_operator.status.storage import Claim

CLAIM = "PersistentVolumeClaim"
SET = "StatefulSet"
# Mark on a server's claim: how many servers there were when all of them served; 0: never yet.
SERVERS = "espha.dev/servers"
# Condition of a claim whose volume has grown, and whose file system has not yet.
_PENDING = "FileSystemResizePending"
# Seconds after which a refused growth is tried again: somebody may have changed the class.
AGAIN = 600.0


def claim(one: Object) -> Claim:
    """Read a claim."""
    meta, status = one["metadata"], one.get("status") or {}
    labels = meta.get("labels") or {}
    servers = labels.get(SERVERS, "")
    return Claim(
        name=meta["name"],
        component=labels.get("app.kubernetes.io/component", ""),
        uid=meta.get("uid", ""),
        request=int(amount(one["spec"]["resources"]["requests"]["storage"])),
        capacity=int(amount((status.get("capacity") or {}).get("storage", 0))),
        owners=frozenset(owner["uid"] for owner in meta.get("ownerReferences") or []),
        servers=(int(servers) or None) if servers.isdecimal() else None,
        marked=bool(servers),
        leaving=bool(meta.get("deletionTimestamp")),
        made=meta.get("creationTimestamp") or "",
        pending=_pending(status),
    )


def _pending(status: Object) -> str:
    """Return since when a file system waits for its pod to start again; empty: it does not."""
    told: Object = next(
        (one for one in status.get("conditions") or [] if one["type"] == _PENDING), {}
    )
    return (told.get("lastTransitionTime") or "") if told.get("status") == "True" else ""


def template(one: Object) -> Object | None:
    """Return the template of claims in a StatefulSet; None: it has none."""
    found: list[Object] = one["spec"].get("volumeClaimTemplates") or []
    return found[0] if found else None


def size(one: Object) -> int:
    """Return the bytes that the template of a StatefulSet asks for; 0: it has none."""
    found = template(one)
    return int(amount(found["spec"]["resources"]["requests"]["storage"])) if found else 0


def of_set(wanted: Object, claims: Iterable[Claim]) -> list[Claim]:
    """Return the claims that belong to a StatefulSet, by their names."""
    found = template(wanted)
    start = f"{found['metadata']['name']}-{wanted['metadata']['name']}-" if found else ""
    return [
        one
        for one in claims
        if start and one.name.startswith(start) and one.name[len(start) :].isdecimal()
    ]


@dataclass(frozen=True)
class Fit:
    """StatefulSets as they can be applied now.

    Attributes:
        wanted: the objects.
        orphan: StatefulSets to be deleted without their pods.
        leaving: names of those that are not there any more, or soon will not be.
    """

    wanted: list[Object]
    orphan: tuple[Object, ...] = ()
    leaving: frozenset[str] = frozenset()


def fit(
    wanted: list[Object],
    live: Mapping[str, Object],
    claims: Iterable[Claim],
    gone: Collection[str] = (),
    stuck: Collection[str] = (),
) -> Fit:
    """Make wanted objects such that the API server takes them. Pure.

    1. A template stays as it is until all claims of the set have grown.
    2. Then claims must not go with the set (`whenDeleted: Retain`, and no owner any more).
    3. Then the set is deleted without its pods, and when it has gone, made anew. Until then
       nothing is applied to it, or it would be made anew as it was.

    Args:
        wanted: the objects.
        live: StatefulSets that are there, by name.
        claims: of the deployment.
        gone: uids of sets that were deleted already, whatever the store still says.
        stuck: uids of sets that cannot be deleted: they stay with the template that they have.
    """
    known, orphan, made = list(claims), [], []
    leaving = set()
    for one in wanted:
        there = live.get(one["metadata"]["name"]) if one["kind"] == SET else None
        if there is None or not size(one) or size(there) == size(one):
            made.append(one if there is None or not size(one) else _with_template(one, there))
            continue
        if there["metadata"]["uid"] in gone or "deletionTimestamp" in there["metadata"]:
            leaving.add(one["metadata"]["name"])
            continue
        kept = _with_template(one, there)
        mine = of_set(one, known)
        if mine and all(each.request >= size(one) for each in mine) and size(one) > size(there):
            kept["spec"]["persistentVolumeClaimRetentionPolicy"]["whenDeleted"] = "Retain"
            owned = any(there["metadata"]["uid"] in each.owners for each in mine)
            if not owned and _retains(there) and there["metadata"]["uid"] not in stuck:
                orphan.append(there)
                leaving.add(one["metadata"]["name"])
                continue
        made.append(kept)
    return Fit(made, tuple(orphan), frozenset(leaving))


def _retains(there: Object) -> bool:
    policy = there["spec"].get("persistentVolumeClaimRetentionPolicy") or {}
    return bool(policy.get("whenDeleted", "Retain") == "Retain")


def _with_template(wanted: Object, there: Object) -> Object:
    """Return a StatefulSet with the size that its template has now."""
    found, made = template(there), copy.deepcopy(wanted)
    if found is not None:
        storage = found["spec"]["resources"]["requests"]["storage"]
        made["spec"]["volumeClaimTemplates"][0]["spec"]["resources"]["requests"] = {
            "storage": storage
        }
    return made


@dataclass
class Grower:
    """Has claims grow; remembers refusals, so that nobody is asked again and again."""

    cluster: Cluster
    clock: Callable[[], float]
    _refused: dict[tuple[str, int], tuple[str, float]] = field(default_factory=dict)

    def grow(
        self, namespace: str, wanted: Iterable[Object], claims: Iterable[Claim]
    ) -> tuple[tuple[str, ...], str]:
        """Ask for the sizes that are wanted.

        Returns:
            Names of claims that are smaller yet, and why they stay so; empty: nobody has refused.
        """
        known, growing = list(claims), []
        for one in wanted:
            for each in of_set(one, known) if one["kind"] == SET else ():
                if each.leaving:
                    continue
                if each.request < size(one):
                    self._ask(namespace, each, one)
                if min(each.request, each.capacity or each.request) < size(one):
                    growing.append(each.name)
        kept = {key: told for key, told in self._refused.items() if key[0] in growing}
        self._refused = kept
        return tuple(growing), next((why for why, _ in kept.values()), "")

    def _ask(self, namespace: str, one: Claim, wanted: Object) -> None:
        key = (one.name, size(wanted))
        if key in self._refused and self.clock() < self._refused[key][1]:
            return
        found = template(wanted) or {}
        storage = found["spec"]["resources"]["requests"]["storage"]
        change = {"spec": {"resources": {"requests": {"storage": storage}}}}
        try:
            self.cluster.patch(CLAIM, namespace, one.name, change)
            self._refused.pop(key, None)
        except ApiException as error:
            if error.status not in (403, 422):
                raise
            why = f"{one.name} cannot grow to {storage}: {reason(error)}"
            self._refused[key] = (why, self.clock() + AGAIN)

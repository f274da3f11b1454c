"""The volumes of a deployment: their growth, how full they are, and what lies on them.

What takes long is looked for beside the steps, now and then.
"""

import logging
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta

from kubernetes.client.exceptions import ApiException

from espha.protocol.http import at
from espha_operator.api.deployment import Deployment, ModelFacts
from espha_operator.api.names import HTTP_PORT, REPLACE
from espha_operator.reconcile import growth, replacing, versions
from espha_operator.reconcile.annotations import requested
from espha_operator.reconcile.cluster import Cluster, is_refusal, reason
from espha_operator.reconcile.growth import CLAIM, SERVERS, SET, Grower
from espha_operator.reconcile.kafka_talk import KafkaTalk, Quorum, TalkError, talk
from espha_operator.reconcile.observe import Pod, four_letters, selector
from espha_operator.reconcile.trimming import Trimmer
from espha_operator.resources.meta import Object
from espha_operator.status import checks, model_change, storage
from espha_operator.status.facts import Facts
from espha_operator.status.replacing import Others, decide
from espha_operator.status.storage import WARN, Claim, DiskFacts, Room
from espha_operator.status.texts import listed

# Seconds between two looks: usually, and while somebody waits for what comes of one.
USUALLY, SOON = 30.0, 3.0
# Seconds for which volumes that grow are looked at soon; some never tell that they have grown.
GROWS = 120.0
# Time that a kubelet has to enlarge a file system that is in use.
_ONLINE = timedelta(minutes=5)
_ANSWER = 1.0
_MARKED = ("zookeeper", "kafka")
# Of all deployments together; no step waits for one of these.
_LOOKING = ThreadPoolExecutor(max_workers=8, thread_name_prefix="disks")
_LOG = logging.getLogger(__name__)

Submit = Callable[[Callable[[], "Look"]], "Future[Look]"]


@dataclass(frozen=True)
class Look:
    """What was found at one moment."""

    facts: DiskFacts = field(default_factory=DiskFacts)
    claims: tuple[Claim, ...] = ()
    others: Others = field(default_factory=Others)


@dataclass(frozen=True)
class Scene:
    """What a look is about."""

    resource: Object
    facts: Facts
    pods: tuple[Pod, ...]
    token: Callable[[], str]
    wanted: list[Object] = field(default_factory=list)

    @property
    def addresses(self) -> dict[str, str]:
        """Where the supervisors of pods are, as far as these have an address."""
        return {pod.name: at(pod.address, HTTP_PORT) for pod in self.pods if pod.address}


class DiskKeeper:
    """Keeps the volumes of one deployment."""

    def __init__(
        self, cluster: Cluster, clock: Callable[[], float], submit: Submit = _LOOKING.submit
    ) -> None:
        """Remember what was seen last, and what was refused."""
        self._cluster, self._clock, self._submit = cluster, clock, submit
        self._grower, self._trimmer = Grower(cluster, clock), Trimmer(clock)
        self._asked: Future[Look] | None = None
        self._seen: Look | None = None
        self._due = 0.0
        self._growing: tuple[tuple[str, ...], float] = ((), 0.0)
        self._wanted: list[Object] = []
        self._gone: set[str] = set()
        self._stuck: dict[str, tuple[str, float]] = {}

    @property
    def known(self) -> DiskFacts | None:
        """What was seen last; None: nothing yet."""
        return self._seen.facts if self._seen else None

    def look(self, scene: Scene) -> None:
        """Take in the last look, and begin the next one when it is time."""
        if self._asked is not None and self._asked.done():
            found, self._asked = _result(self._asked), None
            self._seen = found or self._seen
            soon = _hurries(scene, found) or self._grows(found)
            self._due = self._clock() + (SOON if soon else USUALLY)
        if self._asked is None and self._clock() >= self._due:
            whole = replace(scene, wanted=self._wanted)
            self._asked = self._submit(lambda: self._look(whole))

    def _grows(self, found: Look | None) -> bool:
        """Tell whether volumes grow, and have done so lately."""
        growing = found.facts.growing if found and not found.facts.refused else ()
        if growing != self._growing[0]:
            self._growing = growing, self._clock()
        return bool(growing) and self._clock() - self._growing[1] < GROWS

    def hurry(self) -> None:
        """Look again with the next step."""
        self._due = 0.0

    def fit(
        self, deployment: Deployment, wanted: list[Object]
    ) -> tuple[list[Object], frozenset[str], str]:
        """Return wanted objects as they can be applied now; deletes sets without their pods.

        Beside them, names of those that are on their way out, and nobody may touch; and which sets
        the API server does not let go, as a sentence.
        """
        if wanted != self._wanted:
            self._wanted = wanted
            self.hurry()
        sets = self._cluster.list(SET, deployment.namespace, selector(deployment))
        live = {one["metadata"]["name"]: one for one in sets}
        claims = self._seen.claims if self._seen else ()
        due = {
            one["metadata"]["uid"]: one
            for one in growth.fit(wanted, live, claims, self._gone).orphan
        }
        self._stuck = {uid: told for uid, told in self._stuck.items() if uid in due}
        for uid, one in due.items():
            if uid not in self._stuck or self._clock() >= self._stuck[uid][1]:
                self._orphan(uid, one["metadata"]["namespace"], one["metadata"]["name"])
        fitted = growth.fit(wanted, live, claims, self._gone, self._stuck)
        return fitted.wanted, fitted.leaving, listed(why for why, _ in self._stuck.values())

    def _orphan(self, uid: str, namespace: str, name: str) -> None:
        try:
            self._cluster.delete(SET, namespace, name, uid=uid, orphan=True)
        except ApiException as error:
            if not is_refusal(error):
                raise
            why = f"{SET} {name} cannot be made anew: {reason(error)}"
            self._stuck[uid] = why, self._clock() + growth.AGAIN
        else:
            _LOG.info("%s/%s is made anew, for larger volumes", namespace, name)
            self._stuck.pop(uid, None)
            self._gone.add(uid)

    def follow(self, scene: Scene) -> None:
        """Bring a request to replace a pod one step further."""
        request = requested(scene.resource, REPLACE)
        if not request or self._seen is None:
            return
        seen = self._seen
        uids = {pod.name: pod.uid for pod in scene.pods}
        next_ = decide(request, scene.facts, seen.claims, seen.others, uids)
        pod = None
        if next_.action == "delete":
            deployment = scene.facts.deployment
            pods = self._cluster.list("Pod", deployment.namespace, selector(deployment))
            pod = next((one for one in pods if one["metadata"]["name"] == next_.pod), None)
        replacing.follow(self._cluster, scene.resource, pod, next_)
        self.hurry()

    def _look(self, scene: Scene) -> Look:
        """Look at claims, servers and logs; have claims grow and logs trimmed."""
        deployment = scene.facts.deployment
        found = self._cluster.list(CLAIM, deployment.namespace, selector(deployment))
        claims = tuple(growth.claim(one) for one in found)
        wanted = [] if scene.facts.paused else scene.wanted
        growing, refused = self._grower.grow(deployment.namespace, wanted, claims)
        serving, rooms = _zookeeper(scene, claims)
        made = scene.resource["metadata"].get("creationTimestamp") or ""
        kept = storage.inherited(claims, made)
        pods = {pod.name: (pod.uid, pod.made) for pod in scene.pods}
        before = (datetime.now(UTC) - _ONLINE).strftime("%Y-%m-%dT%H:%M:%SZ")
        pending, waiting = storage.pending(claims, pods, before)
        facts = DiskFacts(
            growing=growing,
            pending=pending,
            waiting=waiting,
            refused=refused,
            foreign=_foreign(deployment, kept),
        )
        quorum, others = Quorum(), Others(error="it was not asked.", serving=serving)
        model, held = _trimmed_for(scene.facts), ""
        if _may_ask(scene.facts):
            try:
                with talk(deployment.bootstrap) as kafka:
                    if not deployment.spec.kafka.external:
                        rooms += _brokers(deployment, kafka.rooms())
                        quorum = kafka.quorum()
                        others = Others(absent=kafka.absent(), serving=serving)
                    held = self._trim(kafka, scene, rooms, model)
            except TalkError as error:
                if others.error:  # else they are known, and only the trimming has failed
                    others = Others(error=str(error), serving=serving)
                held = f"{str(error).rstrip('.')}." if model else ""
        self._mark(scene.facts, claims, made)
        formatted, allowed = storage.may_format(
            deployment.spec.kafka.replicas, kept, quorum.ends, quorum.leader, quorum.certain
        )
        facts = replace(
            facts,
            rooms=self._with_silent(rooms),
            trim_held=held,
            formatted=formatted,
            may_format=allowed,
        )
        return Look(facts, claims, others)

    def _with_silent(self, rooms: list[Room]) -> tuple[Room, ...]:
        """Add what was known of servers that do not answer: perhaps their volume is full."""
        told = {one.owner for one in rooms}
        before = self._seen.facts.rooms if self._seen else ()
        return (*rooms, *(one for one in before if one.owner not in told))

    def _trim(
        self, kafka: KafkaTalk, scene: Scene, rooms: list[Room], model: ModelFacts | None
    ) -> str:
        if model is None:
            return ""
        facts = scene.facts
        topics = facts.topics
        if topics is None or topics.error or topics.missing:
            return "Waits for the topics."
        scarce = any(one.share >= WARN for one in rooms)
        return self._trimmer.step(
            kafka, facts, model, scene.addresses, scene.token(), scarce=scarce
        )

    def _mark(self, facts: Facts, claims: tuple[Claim, ...], made: str) -> None:
        """Note on the claims of servers that they hold data, once all of these serve.

        Until then a claim of this deployment says that it is new: when it is kept without ever
        having served, it need not be taken for one with data.
        """
        for component, replicas, ready in _servers(facts) if not facts.paused else ():
            for one in claims:
                if one.component != component or one.servers is not None or one.leaving:
                    continue
                if ready or not (one.marked or storage.is_left(one, made)):
                    change = {"metadata": {"labels": {SERVERS: str(replicas if ready else 0)}}}
                    self._cluster.patch(CLAIM, facts.deployment.namespace, one.name, change)


def _servers(facts: Facts) -> list[tuple[str, int, bool]]:
    """Return our own servers: their component, how many there are, and whether all serve."""
    ready = {
        "zookeeper": checks.zookeeper_ready(facts).ok,
        "kafka": checks.kafka_ready(facts).ok and facts.topics is not None,
    }
    return [(name, count, ready[name]) for name, count in _counts(facts.deployment).items()]


def _counts(deployment: Deployment) -> dict[str, int]:
    """Return how many servers there are of each component that is the operator's."""
    zookeeper, kafka = deployment.spec.zookeeper, deployment.spec.kafka
    counts = {} if zookeeper.external else {"zookeeper": zookeeper.replicas}
    return counts if kafka.external else {**counts, "kafka": kafka.replicas}


def _trimmed_for(facts: Facts) -> ModelFacts | None:
    """Return the model behind whose snapshots logs are trimmed now; None: they are left alone.

    It is the one that leads: one in the shadow may read other topics.
    """
    if not facts.deployment.spec.topics.trimmed or facts.paused:
        return None
    leads = model_change.running(facts)
    return versions.leading(facts.deployment, facts.versions, leads, facts.planned)


def _may_ask(facts: Facts) -> bool:
    return bool(facts.deployment.spec.kafka.external) or facts.set("kafka").ready > 0


def _hurries(scene: Scene, found: Look | None) -> bool:
    """Tell whether somebody waits for what comes of the next look."""
    if found is None or requested(scene.resource, REPLACE):
        return True
    facts = found.facts
    fresh = any(one.component in _MARKED and one.servers is None for one in found.claims)
    return bool(facts.foreign or fresh or not found.claims)


def _result(asked: "Future[Look]") -> Look | None:
    try:
        return asked.result()
    except ApiException as error:
        _LOG.warning("volumes: %s", reason(error))
    except Exception:  # of a kind that nobody has foreseen; the next look is the next try
        _LOG.exception("volumes")
    return None


def _foreign(deployment: Deployment, claims: tuple[Claim, ...]) -> dict[str, str]:
    """Say of which of our own servers kept volumes do not fit, and why."""
    found = {
        component: storage.foreign(deployment.name, component, count, claims)
        for component, count in _counts(deployment).items()
    }
    return {component: why for component, why in found.items() if why}


def _brokers(deployment: Deployment, rooms: Mapping[int, tuple[int, int]]) -> list[Room]:
    return [
        Room(f"{deployment.name}-kafka-{broker}", total, used)
        for broker, (total, used) in sorted(rooms.items())
    ]


def _zookeeper(scene: Scene, claims: tuple[Claim, ...]) -> tuple[frozenset[str], list[Room]]:
    """Return the servers of a managed ZooKeeper that serve, and what they have on their volumes."""
    sizes = {one.name: one.capacity for one in claims}
    serving, rooms = set(), []
    for pod in scene.pods:
        if pod.component != "zookeeper" or not pod.address:
            continue
        if "Mode: " in four_letters(pod.address, "srvr", _ANSWER):
            serving.add(pod.name)
        told = dict(
            line.split(": ", 1)
            for line in four_letters(pod.address, "dirs", _ANSWER).splitlines()
            if ": " in line
        )
        used = [told[one] for one in ("datadir_size", "logdir_size") if one in told]
        total = sizes.get(f"data-{pod.name}", 0)
        if used and total and all(one.strip().isdecimal() for one in used):
            rooms.append(Room(pod.name, total, sum(map(int, used))))
    return frozenset(serving), rooms

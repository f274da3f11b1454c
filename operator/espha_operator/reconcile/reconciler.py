"""One deployment's reconciliation, a step at a time."""

import logging
import time
from collections.abc import Callable
from datetime import UTC, datetime

from espha_operator.api import KIND, Status
from espha_operator.api.deployment import Deployment, ModelFacts
from espha_operator.api.images import Images
from espha_operator.api.names import PAUSED
from espha_operator.reconcile import models, plan, switchover
from espha_operator.reconcile.applier import AGAIN, Applier
from espha_operator.reconcile.claims import Claims
from espha_operator.reconcile.cluster import Cluster
from espha_operator.reconcile.last_good import LastGood
from espha_operator.reconcile.observe import Observed, observe
from espha_operator.reconcile.recorder import Recorder
from espha_operator.reconcile.roller import Roller
from espha_operator.reconcile.topics import TopicKeeper
from espha_operator.resources.meta import Object
from espha_operator.status import build, checks
from espha_operator.status.facts import Facts, TopicFacts, Verdict

# Seconds between two looks at the topics: while something is amiss, and when all is well.
TOPICS_SOON, TOPICS_LATER = 2.0, 5.0
_LOG = logging.getLogger(__name__)


class Reconciler:
    """Keeps one deployment as its resource says; nothing that it remembers is needed."""

    def __init__(
        self,
        cluster: Cluster,
        namespace: str,
        name: str,
        images: Images,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Remember only to spare work: what was applied, the model read last, Kafka's answer."""
        self._cluster, self._namespace, self._name = cluster, namespace, name
        self._images, self._clock = images, clock
        self._applier = Applier(cluster, clock)
        self._roller = Roller(cluster, clock)
        self._claims = Claims(cluster, clock)
        self._keeper: tuple[str, TopicKeeper] | None = None
        self._model: tuple[object, ModelFacts | Verdict] | None = None
        self._topics: TopicFacts | None = None
        self._topics_due = 0.0
        self._last_good = LastGood(cluster)
        self._recorder = Recorder(cluster, clock)
        self._token_due = 0.0

    def step(self) -> None:
        """Observe, plan, apply, report. Blocks; to be called again and again.

        1. Read the resource and its model.
        2. Look at what runs; ask the engines and ZooKeeper servers.
        3. Ask Kafka for the topics and make missing ones, when there is a Kafka.
        4. Apply what the plan wants, delete what it does not want any more.
        5. Mirror the roles to pod labels, take a roll-out and a requested switchover one step
           further, and write the status if it has changed.
        """
        resource = self._cluster.get(KIND, self._namespace, self._name)
        if resource is None or "deletionTimestamp" in resource["metadata"]:
            return
        before = Status.read(resource.get("status"))
        parsed = models.parse(resource, self._images)
        if isinstance(parsed, Verdict):
            generation = resource["metadata"]["generation"]
            after = build.refused(before, parsed, generation, datetime.now(UTC))
            self._report(resource, before, after)
            return
        seen = observe(self._cluster, parsed)
        facts = self._facts(parsed, seen, before, paused=is_paused(resource))
        self._label(facts, seen)
        addresses = {pod.name: pod.address for pod in seen.pods}
        if not facts.paused:
            facts = facts.replace(rolling=self._roller.step(resource, facts, seen))
        switchover.follow(self._cluster, resource, facts, addresses)
        self._report(resource, before, build.build(facts, before, datetime.now(UTC)))
        self._recorder.engines(resource, before, facts)
        if not facts.paused:
            self._keep_token(parsed)

    def failed(self, error: Exception) -> None:
        """Say in the status that a step has failed for a reason that nobody has foreseen."""
        resource = self._cluster.get(KIND, self._namespace, self._name)
        if resource is None or "deletionTimestamp" in resource["metadata"]:
            return
        before = Status.read(resource.get("status"))
        generation = resource["metadata"]["generation"]
        self._report(resource, before, build.failed(before, error, generation, datetime.now(UTC)))

    def _keep_token(self, deployment: Deployment) -> None:
        if self._clock() >= self._token_due:
            switchover.token(self._cluster, deployment)
            self._token_due = self._clock() + AGAIN

    def _facts(
        self, deployment: Deployment, seen: Observed, before: Status, *, paused: bool
    ) -> Facts:
        was = before.condition("Progressing")
        model = self._read_model(deployment)
        facts = Facts(
            deployment,
            model,
            seen.sets,
            seen.serving,
            seen.engines,
            last_good=self._planned_last(deployment, model, before),
            images={pod.name: pod.image for pod in seen.pods},
            paused=paused,
            progressing=was is not None and was.status == "True",
        )
        facts = self._with_topics(facts)
        facts = facts.replace(shared_claims=self._claims.shared(deployment))
        wanted = plan.plan(facts)
        if wanted is None:
            return facts
        facts = facts.replace(promised=plan.promised(wanted))
        if paused:
            return facts
        return facts.replace(error=self._applier.apply(deployment, wanted, plan.kept(facts)))

    def _planned_last(
        self, deployment: Deployment, model: ModelFacts | Verdict, before: Status
    ) -> ModelFacts | None:
        if isinstance(model, ModelFacts):
            self._last_good.keep(model)
            return None
        return self._last_good.find(deployment, before.model)

    def _read_model(self, deployment: Deployment) -> ModelFacts | Verdict:
        text = models.text(
            deployment, lambda name: self._cluster.get("ConfigMap", self._namespace, name)
        )
        if isinstance(text, Verdict):
            return text
        spec = deployment.spec
        seen = (text, spec.topics.prefix, spec.adapters)
        if self._model is None or self._model[0] != seen:
            self._model = (seen, models.check(*text, deployment))
        return self._model[1]

    def _with_topics(self, facts: Facts) -> Facts:
        # What was known of the topics stays true as long as nobody can look again.
        if facts.planned and self._may_ask(facts):
            keeper = self._topic_keeper(facts.deployment.bootstrap)
            self._topics = keeper.ensure(
                facts.deployment, facts.planned.topics, change=not facts.paused
            )
            amiss = self._topics != TopicFacts(brokers=self._topics.brokers)
            self._topics_due = self._clock() + (TOPICS_SOON if amiss else TOPICS_LATER)
        return facts.replace(topics=self._topics)

    def _may_ask(self, facts: Facts) -> bool:
        return self._clock() >= self._topics_due and checks.brokers_ready(facts).ok

    def _topic_keeper(self, bootstrap: str) -> TopicKeeper:
        if self._keeper is None or self._keeper[0] != bootstrap:
            self._keeper = (bootstrap, TopicKeeper(bootstrap))
        return self._keeper[1]

    def _label(self, facts: Facts, seen: Observed) -> None:
        labelled = {pod.name: pod.role for pod in seen.pods if pod.component == "engine"}
        for pod, role in build.roles(facts, labelled).items():
            self._cluster.patch("Pod", self._namespace, pod, build.role_patch(role))

    def _report(self, resource: Object, before: Status, after: Status) -> None:
        if after == before:
            return
        _LOG.info("%s/%s: %s", self._namespace, self._name, _summary(after))
        self._cluster.apply_status(self._namespace, self._name, _dumped(after))
        self._recorder.status(resource, before, after)


def is_paused(resource: Object) -> bool:
    """Tell whether an annotation keeps the operator from changing anything."""
    annotations = resource["metadata"].get("annotations") or {}
    return str(annotations.get(PAUSED, "")).lower() == "true"


def _dumped(status: Status) -> Object:
    return status.model_dump(by_alias=True, exclude_none=True)


def _summary(status: Status) -> str:
    ready = status.conditions[-1]
    return f"{status.phase}: {ready.reason}: {ready.message}"

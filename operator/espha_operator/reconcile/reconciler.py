"""One deployment's reconciliation, a step at a time."""

import time
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial

from kubernetes.client.exceptions import ApiException

from espha_operator.api import KIND, Status
from espha_operator.api.deployment import Deployment, ModelFacts, ModelVersion
from espha_operator.api.images import Images
from espha_operator.api.names import PAUSED
from espha_operator.reconcile import (
    connectors,
    model_change,
    models,
    plan,
    switchover,
    upgrades,
    versions,
)
from espha_operator.reconcile.adapter_view import AdapterView
from espha_operator.reconcile.applier import REFUSED, Applier
from espha_operator.reconcile.claims import Claims
from espha_operator.reconcile.cluster import Cluster, is_refusal, reason
from espha_operator.reconcile.disks import DiskKeeper, Scene
from espha_operator.reconcile.last_good import LastGood
from espha_operator.reconcile.observe import Observed, observe, owners
from espha_operator.reconcile.order_logs import OrderLogs
from espha_operator.reconcile.pace import Pace
from espha_operator.reconcile.reporter import Reporter
from espha_operator.reconcile.roller import Roller
from espha_operator.reconcile.tokens import AGAIN, Tokens
from espha_operator.reconcile.topic_view import TopicView
from espha_operator.reconcile.topics import TopicKeeper
from espha_operator.reconcile.upgrades import Upgrader
from espha_operator.resources.meta import Object, token_name
from espha_operator.status import adapters, build, checks
from espha_operator.status.facts import Facts, Verdict, leading_model
from espha_operator.status.reasons import Reason
from espha_operator.status.texts import listed

# Seconds between two looks at a ConfigMap with a model, which nobody watches: its owner is a user.
MODEL_AGAIN = 15.0
# The same while there is no good model.
MODEL_SOON = 3.0
# Seconds after its first step in which what nobody has looked at yet may be as the status says.
SETTLES = 60.0
# Changes of role labels a minute, which pods can cause by what they say.
LABELS = 60
_NOT_FOUND = 404


class Reconciler:
    """Keeps one deployment as its resource says; nothing that it remembers is needed."""

    def __init__(
        self,
        cluster: Cluster,
        namespace: str,
        name: str,
        images: Images,
        clock: Callable[[], float] = time.monotonic,
        *,
        uid: str,
        tokens: Tokens,
        order_logs: OrderLogs,
        upgrader: Upgrader,
        gone: Callable[[], None],
        webhook: Callable[[], str | None] = lambda: None,
    ) -> None:
        """Remember only to spare work: what was applied, the model read last, Kafka's answer.

        `gone` is called when the deployment turns out to have gone, though no watch has said so.
        """
        self._cluster, self._namespace, self._name = cluster, namespace, name
        self._uid, self._gone = uid, gone
        self._images, self._clock = images, clock
        self._tokens, self._order_logs = tokens, order_logs
        self._upgrader, self._webhook = upgrader, webhook
        self._applier = Applier(cluster, clock)
        self._reporter = Reporter(cluster, namespace, name, clock)
        self._roller = Roller(cluster, tokens.of, clock)
        self._claims = Claims(cluster, clock)
        self._disks = DiskKeeper(cluster, clock)
        self._keeper: tuple[str, TopicKeeper] | None = None
        self._topics = TopicView(clock)
        self._adapters = AdapterView(clock)
        self._model: tuple[object, ModelFacts | Verdict] | None = None
        self._config_map: tuple[object, Object | None, float] | None = None
        self._last_good = LastGood(cluster)
        self._led: str | None = None
        self._pods: frozenset[str] = frozenset()
        self._settled: float | None = None
        self._labels = Pace(LABELS, clock)
        self._token: tuple[str, float] = ("", clock())

    def step(self) -> None:
        """Observe, plan, apply, report. Blocks; to be called again and again.

        1. Read the resource and its model.
        2. Look at what runs; ask the engines and ZooKeeper servers.
        3. Have Kafka asked for the topics, and missing ones made, when there is a Kafka.
        4. Mirror the roles to pod labels.
        5. Apply what the plan wants, delete what it does not want any more.
        6. Take a roll-out and a requested switchover one step further, and write the status if it
           has changed.
        """
        resource = self._there()
        if resource is None or "deletionTimestamp" in resource["metadata"]:
            return
        before = self._reporter.before(resource)
        parsed = models.parse(resource, self._images)
        if isinstance(parsed, Verdict):
            self._order_logs.seen(resource["metadata"]["uid"])
            self._look(resource, before, parsed)
            return
        if self._order_logs.must_wait(parsed):
            return
        seen = self._observe(parsed)
        facts = self._facts(parsed, seen, before, paused=is_paused(resource))
        self._order_logs.seen(parsed.uid)
        unlabelled = self._label(facts, seen)
        proof = partial(self._tokens.of, parsed)
        self._disks.look(Scene(resource, facts, seen.pods, proof))
        guarded = self._roller.guarded(facts, seen)
        facts = facts.replace(disks=self._disks.known, guarded=guarded)
        facts = self._apply(self._upgrader.upgraded(facts, before.images))
        self._upgrader.tell(facts)
        addresses = {pod.name: pod.address for pod in seen.pods}
        if not facts.paused:
            facts = facts.replace(change=model_change.follow(facts, addresses, proof))
            facts = facts.replace(rolling=self._roller.step(resource, facts, seen))
        switchover.follow(self._cluster, resource, facts, addresses, proof)
        if not facts.paused:
            self._disks.follow(Scene(resource, facts, seen.pods, proof))
        error = listed(filter(None, [facts.error, *unlabelled]))
        self._report(resource, before, facts.replace(error=error))

    def _observe(self, deployment: Deployment) -> Observed:
        seen = observe(self._cluster, deployment, self._pods)
        self._pods = frozenset(pod.uid for pod in seen.pods)
        return seen

    def _look(self, resource: Object, before: Status, wrong: Verdict) -> None:
        """Change nothing where the spec cannot be read; but what runs is looked at, and told."""
        deployment = models.glimpse(resource, self._images)
        seen = self._observe(deployment)
        facts = Facts(deployment, wrong, seen.sets, seen.serving, seen.engines)
        facts = facts.replace(
            topics=self._topics.known(deployment), disks=self._disks.known, webhook=self._webhook()
        )
        self._label(facts, seen)
        self._report(resource, before, facts)

    def _report(self, resource: Object, before: Status, facts: Facts) -> None:
        after = build.build(facts.replace(begins=self._begins()), before, datetime.now(UTC))
        self._write(resource, before, after)
        self._reporter.recorder.engines(resource, before, facts)

    def _begins(self) -> bool:
        if self._settled is None:
            self._settled = self._clock() + SETTLES
        return self._clock() < self._settled

    def failed(self, why: str) -> None:
        """Say in the status why a step did not come to its end."""
        resource = self._there()
        if resource is None or "deletionTimestamp" in resource["metadata"]:
            return
        before = self._reporter.before(resource)
        generation = resource["metadata"]["generation"]
        after = build.failed(before, why, generation, datetime.now(UTC))
        self._write(resource, before, after)

    def _write(self, resource: Object, before: Status, after: Status) -> None:
        try:
            self._reporter.report(resource, before, after)
        except ApiException as error:
            # An API server that has just started may not know the kind yet.
            if error.status != _NOT_FOUND or self._is_listed():
                raise
            self._gone()

    def _there(self) -> Object | None:
        """Return the resource; None: it has gone, though another one may have its name now."""
        resource = self._cluster.get(KIND, self._namespace, self._name)
        if resource is not None and resource["metadata"]["uid"] != self._uid:
            self._gone()
            return None
        return resource

    def _is_listed(self) -> bool:
        found, _ = self._cluster.list_all(KIND, self._namespace, "")
        return any(one["metadata"]["uid"] == self._uid for one in found)

    def _apply(self, facts: Facts) -> Facts:
        wanted = plan.plan(facts)
        if wanted is None:
            return facts
        deployment = facts.deployment
        holding = upgrades.hold(wanted, facts, partial(self._files, deployment.uid))
        facts = facts.replace(promised=plan.promised(holding.wanted))
        if facts.paused:
            return facts
        patched = [self._patch(*which, change) for which, change in holding.patches.items()]
        fitted, leaving, stuck = self._disks.fit(deployment, holding.wanted)
        refused = (
            *patched,
            stuck,
            self._keep_token(deployment),
            self._applier.apply(
                deployment,
                fitted,
                plan.kept(facts) | holding.kept | leaving,
            ),
        )
        return facts.replace(error=listed(filter(None, refused)))

    def _keep_token(self, deployment: Deployment) -> str:
        error, due = self._token
        if self._clock() >= due:
            try:
                self._tokens.ensure(deployment)
            except ApiException as refusal:
                error, due = f"Secret {token_name(deployment)}: {reason(refusal)}", REFUSED
            else:
                error, due = "", AGAIN
            self._token = error, self._clock() + due
        return error

    def _facts(
        self, deployment: Deployment, seen: Observed, before: Status, *, paused: bool
    ) -> Facts:
        was = before.condition("Progressing")
        known = versions.read(self._cluster, deployment)
        model = versions.settled(self._read_model(deployment, known), known)
        planned = model if isinstance(model, ModelFacts) else None
        if planned is None:
            planned = self._last_good.find(deployment, before.model)
        conflict = self._conflict(deployment, planned) if planned else None
        if conflict:  # nor may the model that was valid last go on
            model, planned = conflict, None
        elif planned:
            self._last_good.keep(planned)
        if self._led is None:
            self._led = versions.named(known, before.model)
        self._led = leading_model(seen.engines, self._led)
        if deployment.spec.adapters.from_model:
            leading = versions.leading(deployment, known, self._led, planned)
            deployment = connectors.with_adapters(deployment, leading)
        facts = Facts(
            deployment,
            model,
            seen.sets,
            seen.serving,
            seen.engines,
            last_good=None if planned is model else planned,
            images={pod.name: pod.image for pod in seen.pods},
            paused=paused,
            versions=known,
            led=self._led,
            progressing=was is not None and was.status == "True",
            webhook=self._webhook(),
            services=seen.services,
        )
        facts = facts.replace(
            shared_claims=self._claims.shared(deployment),
            adapters=self._adapters.look(deployment, seen.pods),
        )
        return self._with_topics(facts)

    def _conflict(self, deployment: Deployment, model: ModelFacts) -> Verdict | None:
        other = self._order_logs.claim(deployment, model.prefix)
        if self._there() is None:  # its claim was dropped before it was made
            self._order_logs.drop(self._uid)
        if not other:
            return None
        text = f"{other} writes topics {model.prefix}.* on the same Kafka, and came first:"
        return Verdict(Reason.CONFLICT, f"{text} give spec.topics.prefix another value.")

    def _read_model(
        self, deployment: Deployment, known: tuple[ModelVersion, ...]
    ) -> ModelFacts | Verdict:
        text = versions.rolled_back(deployment, known) or models.text(
            deployment, partial(self._read_config_map, deployment)
        )
        if isinstance(text, Verdict):
            return text
        spec = deployment.spec
        seen = (text, spec.topics.prefix, spec.adapters)
        if self._model is None or self._model[0] != seen:
            self._model = (seen, models.check(*text, deployment))
        return self._model[1]

    def _read_config_map(self, deployment: Deployment, name: str) -> Object | None:
        which = (name, deployment.generation)
        known = self._config_map
        if known is None or known[0] != which or self._clock() >= known[2]:
            found = self._cluster.get("ConfigMap", self._namespace, name)
            good = self._model is not None and isinstance(self._model[1], ModelFacts)
            wait = MODEL_AGAIN if found and good else MODEL_SOON
            known = self._config_map = (which, found, self._clock() + wait)
        return known[1]

    def _with_topics(self, facts: Facts) -> Facts:
        if facts.planned and checks.brokers_ready(facts).ok:
            keeper = self._topic_keeper(facts.deployment.bootstrap)
            model, change = facts.planned, not facts.paused
            topics = self._topics.look(keeper, facts.deployment, model, change=change)
        else:
            topics = self._topics.known(facts.deployment)
        return facts.replace(topics=topics)

    def _topic_keeper(self, bootstrap: str) -> TopicKeeper:
        if self._keeper is None or self._keeper[0] != bootstrap:
            self._keeper = (bootstrap, TopicKeeper(bootstrap))
        return self._keeper[1]

    def _files(self, owner: str, name: str) -> Object | None:
        """Return a ConfigMap that belongs to the deployment."""
        found = self._cluster.get("ConfigMap", self._namespace, name)
        return found if found and owner in owners(found) else None

    def _patch(self, kind: str, name: str, change: Object) -> str:
        """Merge a change into an object; return what the API server refuses, as a sentence."""
        try:
            self._cluster.patch(kind, self._namespace, name, change)
        except ApiException as error:
            if not is_refusal(error):
                raise
            return f"{kind} {name}: {reason(error)}"
        return ""

    def _label(self, facts: Facts, seen: Observed) -> list[str]:
        """Mirror roles to pods' labels; return what the API server refuses."""
        engines = {pod.name: pod.role for pod in seen.pods if pod.component == "engine"}
        others = {pod.name: pod.role for pod in seen.pods if pod.component == "adapter"}
        changed = {**build.roles(facts, engines), **adapters.roles(facts, others)}
        return [
            self._patch("Pod", pod, build.role_patch(role))
            for pod, role in changed.items()
            if self._labels.take()
        ]


def is_paused(resource: Object) -> bool:
    """Tell whether an annotation keeps the operator from changing anything."""
    annotations = resource["metadata"].get("annotations") or {}
    return str(annotations.get(PAUSED, "")).lower() == "true"

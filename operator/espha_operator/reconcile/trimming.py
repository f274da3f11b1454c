"""Trimming a deployment's logs behind the snapshots that engines need."""

import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from pydantic import ValidationError

from espha.protocol.http import NoAnswerError, ask
from espha.protocol.records import position_key
from espha.protocol.snapshots import KEPT, SNAPSHOT, SNAPSHOTS, KeptSnapshot
from espha_operator.api.deployment import ModelFacts
from espha_operator.reconcile import trim_plan
from espha_operator.reconcile.kafka_talk import KafkaTalk
from espha_operator.reconcile.trim_plan import Trim, View
from espha_operator.status.facts import Facts

# Seconds until an engine is asked for a snapshot again.
ASK_AGAIN = 120.0
_ANSWER = 2.0
_LOG = logging.getLogger(__name__)


@dataclass
class Trimmer:
    """Remembers what it has done, to spare Kafka what changes nothing."""

    clock: Callable[[], float] = time.monotonic
    wall: Callable[[], float] = time.time
    _done: dict[str, int] = field(default_factory=dict)
    _keys: set[bytes] = field(default_factory=set)
    _behind_since: float | None = None
    _asked: float = -ASK_AGAIN

    def step(
        self,
        kafka: KafkaTalk,
        facts: Facts,
        model: ModelFacts,
        addresses: Mapping[str, str],
        token: str,
        *,
        scarce: bool,
    ) -> str:
        """Delete what nobody needs; return what holds more up, empty when nothing does.

        Args:
            kafka: the deployment's.
            facts: what runs.
            model: the one that leads.
            addresses: `host:port` of the engines' supervisors, by name.
            token: what to show to an engine that is to write a snapshot.
            scarce: disks are nearly full.
        """
        trim = trim_plan.decide(self._view(kafka, facts, model, addresses, scarce))
        if trim.ask and addresses.get(trim.ask) and self.clock() - self._asked > ASK_AGAIN:
            self._asked = self.clock()
            _have_snapshot_written(trim.ask, addresses[trim.ask], token)
        before, waits = self._without_unsafe(kafka, facts, model, trim)
        fresh = {topic: to for topic, to in before.items() if to > self._done.get(topic, 0)}
        kafka.delete_before(fresh)
        self._done |= fresh
        if fresh:
            _LOG.info("trimmed: %s", ", ".join(f"{one} to {to}" for one, to in fresh.items()))
        return trim.why or waits

    def _view(
        self,
        kafka: KafkaTalk,
        facts: Facts,
        model: ModelFacts,
        addresses: Mapping[str, str],
        scarce: bool,
    ) -> View:
        spec = facts.deployment.spec.engines
        log = model.order_log
        kept = {
            one.name: _kept(addresses[one.name]) for one in facts.engines if addresses.get(one.name)
        }
        return View(
            engines=facts.engines,
            kept=kept,
            wanted=spec.replicas,
            order_log=log,
            ids=kafka.ids([log, *model.input_topics.values()]),
            now_ms=int(self.wall() * 1000),
            interval_s=spec.snapshots.interval,
            behind_s=self._behind_s(facts),
            scarce=scarce,
        )

    def _behind_s(self, facts: Facts) -> float:
        if all(one.in_sync for one in facts.engines):
            self._behind_since = None
            return 0.0
        if self._behind_since is None:
            self._behind_since = self.clock()
        return self.clock() - self._behind_since

    def _without_unsafe(
        self, kafka: KafkaTalk, facts: Facts, model: ModelFacts, trim: Trim
    ) -> tuple[dict[str, int], str]:
        """Leave input topics whole on which an adapter has not kept its position yet."""
        inputs = {path: topic for path, topic in model.input_topics.items() if topic in trim.before}
        if not inputs:
            return dict(trim.before), ""
        adapters = [one for one in facts.deployment.spec.adapters.inputs if one.window in inputs]
        wanted = {position_key(inputs[one.window], one.name): one for one in adapters}
        if not self._keys or not wanted.keys() <= self._keys:
            self._keys = kafka.keys(model.positions)
        if not self._keys and not wanted:
            kafka.mark_trimmed(model.positions)
        missing = [one for key, one in wanted.items() if key not in self._keys]
        whole = {inputs[one.window] for one in missing}
        names = ", ".join(sorted(one.name for one in missing))
        why = f"Waits for input adapters that have not begun yet: {names}." if missing else ""
        return {topic: to for topic, to in trim.before.items() if topic not in whole}, why


def _kept(address: str) -> tuple[KeptSnapshot, ...]:
    try:
        answer = ask(address, SNAPSHOTS, timeout_s=_ANSWER)
        return KEPT.validate_json(answer.body) if answer.code == 200 else ()
    except (NoAnswerError, ValidationError):
        return ()


def _have_snapshot_written(name: str, address: str, token: str) -> None:
    try:
        ask(address, SNAPSHOT, method="POST", token=token, timeout_s=_ANSWER)
    except NoAnswerError as error:
        _LOG.warning("%s was not asked for a snapshot: %s", name, error.why)

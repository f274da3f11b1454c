"""What Kafka says of the topics, asked beside the steps: no step waits for a broker."""

import logging
from collections.abc import Callable, Collection, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import Protocol

from espha_operator.api.deployment import Deployment, ModelFacts
from espha_operator.reconcile.pauses import Pauses
from espha_operator.status.facts import TopicFacts

# Seconds between two looks at the topics: while something is amiss, and when all is well.
SOON, LATER = 2.0, 5.0
# Seconds between two looks when Kafka does not answer: at first, and at most.
FIRST, LONGEST = 2.0, 20.0
# Seconds after which a question counts as not answered.
DEADLINE = 45.0
# Of all deployments together; one deployment asks one question at a time.
_ASKING = ThreadPoolExecutor(max_workers=16, thread_name_prefix="kafka")
_LOG = logging.getLogger(__name__)


class Keeper(Protocol):
    """Who asks, and makes what is missing."""

    def ensure(
        self,
        deployment: Deployment,
        names: Iterable[str],
        *,
        outputs: Collection[str] = (),
        change: bool = True,
    ) -> TopicFacts:
        """Ask. Blocks for seconds."""


class TopicView:
    """The last answer, and the question under way."""

    def __init__(self, clock: Callable[[], float]) -> None:
        """Nothing has been asked."""
        self._clock = clock
        self._facts: TopicFacts | None = None
        self._asked: tuple[Future[TopicFacts], float] | None = None
        self._due = 0.0
        self._pauses = Pauses(FIRST, LONGEST)

    def look(
        self, keeper: Keeper, deployment: Deployment, model: ModelFacts, *, change: bool
    ) -> TopicFacts | None:
        """Ask if it is time to; return the last answer, None before the first one.

        What was known of the topics stays true as long as nobody can look again.
        """
        if self._asked is None and self._clock() >= self._due:
            ask = partial(keeper.ensure, outputs=model.output_topics, change=change)
            self._asked = submit(ask, deployment, model.topics), self._clock()
        return self.known(deployment)

    def known(self, deployment: Deployment) -> TopicFacts | None:
        """Return the last answer without asking."""
        if self._asked is None:
            return self._facts
        answer, at = self._asked
        if answer.done():
            self._asked, self._facts = None, _result(answer, deployment)
            self._due = self._clock() + self._wait(self._facts)
        elif self._clock() > at + DEADLINE:
            silent = f"Kafka at {deployment.bootstrap} has not answered for {DEADLINE:.0f} s."
            self._facts = TopicFacts(error=silent)
        return self._facts

    def _wait(self, facts: TopicFacts) -> float:
        pause = self._pauses.after(not facts.error)
        if facts.error:
            return pause
        return LATER if facts == TopicFacts(brokers=facts.brokers) else SOON


def submit(
    ask: Callable[..., TopicFacts], deployment: Deployment, names: tuple[str, ...]
) -> Future[TopicFacts]:
    """Ask in another thread."""
    return _ASKING.submit(ask, deployment, names)


def _result(answer: Future[TopicFacts], deployment: Deployment) -> TopicFacts:
    try:
        return answer.result()
    except Exception as error:  # an answer of a kind of Kafka that nobody has foreseen
        text = f"Kafka at {deployment.bootstrap}: {type(error).__name__}: {error}"
        _LOG.warning("%s/%s: %s", deployment.namespace, deployment.name, text)
        return TopicFacts(error=text)

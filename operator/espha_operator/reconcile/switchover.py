"""Planned switchovers: the annotation `espha.dev/switchover-to`, and the token to ask with."""

import logging
from collections.abc import Callable, Mapping
from datetime import UTC, datetime

from kubernetes.client.exceptions import ApiException

from espha.protocol.http import NoAnswerError, ask_switchover, at
from espha.protocol.states import SwitchoverReason
from espha_operator.api.names import HTTP_PORT, SWITCHOVER
from espha_operator.reconcile.annotations import annotate, requested
from espha_operator.reconcile.cluster import Cluster, reason
from espha_operator.resources.events import event
from espha_operator.resources.meta import Object
from espha_operator.status.facts import Facts
from espha_operator.status.switchover import Decision, decide

# Seconds that a supervisor may take to answer: it asks ZooKeeper first.
ANSWER = 2.0
_LOG = logging.getLogger(__name__)


def follow(
    cluster: Cluster,
    resource: Object,
    facts: Facts,
    addresses: Mapping[str, str],
    proof: Callable[[], str],
) -> None:
    """Bring the request in a resource's annotation one step further.

    The annotation stays until the request is fulfilled or cannot be, so an operator that dies
    meanwhile loses nothing, and asks again.

    Args:
        cluster: where the resource is.
        resource: the deployment as read.
        facts: what runs.
        addresses: the engines' pods and where they are.
        proof: returns the deployment's token.
    """
    request = requested(resource, SWITCHOVER)
    if request is None:
        return
    try:
        decision = decide(request, facts)
        if decision.action == "ask" and facts.active and addresses.get(facts.active.name):
            decision = ask(addresses[facts.active.name], decision.to, proof())
        _follow(cluster, resource, decision)
    except ApiException as error:
        _LOG.warning("switchover to %s: %s", request, reason(error))


def _follow(cluster: Cluster, resource: Object, decision: Decision) -> None:
    if decision.action == "name":
        annotate(cluster, resource, SWITCHOVER, decision.to)
    elif decision.action in ("done", "refused"):
        annotate(cluster, resource, SWITCHOVER, None)
        good = decision.action == "done"
        why = "SwitchedOver" if good else "SwitchoverRefused"
        cluster.create(event(resource, why, decision.message, good=good, now=datetime.now(UTC)))


def ask(address: str, to: str, proof: str) -> Decision:
    """Ask the active engine's supervisor to hand over."""
    try:
        answer = ask_switchover(at(address, HTTP_PORT), to, proof, ANSWER)
    except NoAnswerError as error:
        _LOG.warning("switchover to %s: the active engine does not answer: %s", to, error)
        return Decision("wait", to)
    if 400 <= answer.code < 500:
        locked = answer.reason is SwitchoverReason.FORBIDDEN
        return Decision("refused", to, f"The active engine refuses: {answer.message}.", locked)
    return Decision("ask" if answer.code < 400 else "wait", to)

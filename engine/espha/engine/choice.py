"""Which model an engine process runs: that of the order log, or, beside it, the next one.

The order log says which model the next record is of. An engine that has been given this one runs
it. One that has been given another one runs that in the shadow, where others run the model of the
log. It runs the model of the log itself, which it has kept or gets from a peer, where nobody else
does, and where the log has gone over to that one since the engine was given the other one.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import structlog
from pydantic import ValidationError

from espha.deployment import DeployedModel, DeploymentError, deployed
from espha.engine.shadow import ShadowError
from espha.kafka.order_log import last_order_record
from espha.kafka.reader import Offsets
from espha.model import model_digest
from espha.protocol.http import NoAnswerError, ask
from espha.protocol.model_change import PATH, ModelAction, ModelRequest
from espha.protocol.order import OrderRecord
from espha.protocol.settings import Settings
from espha.protocol.states import EngineState
from espha.protocol.switchover import SwitchoverAnswer
from espha.recovery.healing import Statuses, statuses
from espha.recovery.texts import Texts

_RUNS = (EngineState.ACTIVE, EngineState.STANDBY, EngineState.REPLAYING)
_LOG = structlog.get_logger()


class Choice(NamedTuple):
    """What an engine process runs.

    Attributes:
        deployed: the model.
        digest: its digest.
        wanted: digest of the model that the engine has been given.
        tail: the last order record; None: there is none.
        shadow: it runs beside the model of the order log.
        since: order record behind which the model began with empty state; None: not known.
        start: offset in the order log from which on it is read where there is no snapshot.
        forced: behind this order record it may lead although the log is of another model.
    """

    deployed: DeployedModel
    digest: str
    wanted: str
    tail: OrderRecord | None
    shadow: bool = False
    since: int | None = None
    start: int = 0
    forced: int | None = None


def choose(
    given: DeployedModel,
    settings: Settings,
    texts: Texts,
    peers: Callable[[], Sequence[str]],
    follows: Callable[[], bool] = lambda: False,
) -> Choice:
    """Choose what to run.

    Args:
        given: the model that the engine has been given.
        settings: of the engine.
        texts: the models that it has kept.
        peers: returns the addresses of all replicas' supervisors.
        follows: tells whether the order log has gone over to another model since the engine was
            given its own.

    Raises:
        ShadowError: the engine is to follow, and nobody answers who has the model.
        DeploymentError: the model of the order log is needed, and it is nowhere.
        LogError: the order log cannot be read.
    """
    topic = given.plan.order_log
    wanted = model_digest(given.project)
    texts.keep(wanted, given.xml)
    end = Offsets(settings.bootstrap).end(topic)
    tail = last_order_record(settings.bootstrap, topic)
    if tail is None or tail.next_model == wanted:
        return Choice(given, wanted, wanted, tail, since=tail.next_since if tail else None)
    if is_forced(settings.force_model, wanted, tail.sequence):
        _LOG.error("leads in place of the order log's model", model=tail.next_model, given=wanted)
        return Choice(given, wanted, wanted, tail, forced=tail.sequence)
    model = tail.next_model
    listed = list(peers())
    following = follows()
    runs = [] if following else _who_runs(model, statuses(listed, settings.name))
    if not runs and (xml := texts.find(model, listed)) is not None:
        needed = deployed(xml, f"model {model[:12]}", settings.prefix, settings.deployment)
        if model_digest(needed.project) == model and needed.plan.order_log == topic:
            _LOG.warning("runs the model of the order log", model=model, given=wanted)
            texts.keep(model, xml)
            return Choice(needed, model, wanted, tail, since=tail.next_since)
    if following:
        raise ShadowError(f"the order log goes on with model {model[:12]}, which no replica has")
    if not runs and not listed:
        raise DeploymentError(
            f"the order log goes on with model {model[:12]}, which is nowhere; this engine has "
            f"been given {wanted[:12]}"
        )
    marked = tail.shadow if tail.shadow and tail.shadow.model == wanted else None
    if tail.switch or marked is None:
        return Choice(given, wanted, wanted, tail, shadow=True, start=end)
    return Choice(given, wanted, wanted, tail, True, marked.since, marked.offset)


def is_forced(said: str, model: str, sequence: int) -> bool:
    """Tell whether a model may lead behind an order record whatever the log is of.

    Args:
        said: `ESPHA_FORCE_MODEL`.
        model: the model's digest.
        sequence: of the last order record.
    """
    digest, _, behind = said.partition("@")
    return bool(digest) and model.startswith(digest) and int(behind) == sequence


def ask_for_shadow(
    settings: Settings, model: str, peers: Callable[[], Sequence[str]]
) -> Callable[[int | None], str]:
    """Return what asks the active engine to let a model begin; see `espha.engine.shadow.Ask`."""

    def asked(since: int | None) -> str:
        told = statuses(list(peers()), settings.name)
        active = [at for at, one in told.items() if one.state is EngineState.ACTIVE]
        if not active:
            return "no active engine answers"
        request = ModelRequest(action=ModelAction.SHADOW, model=model, since=since)
        try:
            answer = ask(
                active[0], PATH, method="POST", body=request.encode(), token=settings.token
            )
            told_why = SwitchoverAnswer.model_validate_json(answer.body)
        except NoAnswerError as error:
            return str(error)
        except ValidationError:
            return f"{active[0]} does not know of shadows: it is of an earlier version"
        return "" if told_why.code == 202 else told_why.message

    return asked


def _who_runs(model: str, told: Statuses) -> list[str]:
    """Return the names of those who run a model, and not in the shadow of another one."""
    return [
        one.name
        for one in told.values()
        if one.state in _RUNS
        and one.engine is not None
        and one.engine.model_digest == one.engine.log_model == model
    ]

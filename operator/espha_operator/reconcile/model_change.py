"""Changes of the model: asking the active engine for the next step."""

import logging
from collections.abc import Callable, Mapping

from pydantic import ValidationError

from espha.protocol.http import NoAnswerError, ask, at
from espha.protocol.model_change import PATH, ModelRequest
from espha.protocol.switchover import SwitchoverAnswer
from espha_operator.api.names import HTTP_PORT
from espha_operator.status.facts import Facts
from espha_operator.status.model_change import decide

# Seconds that a supervisor may take to answer: it asks the others first.
ANSWER = 3.0
_LOG = logging.getLogger(__name__)


def follow(facts: Facts, addresses: Mapping[str, str], proof: Callable[[], str]) -> str:
    """Bring a change of the model one step further; say why that cannot be, or nothing.

    Each step is asked for again until it stands in the order log, so nothing has to be remembered.

    Args:
        facts: what runs.
        addresses: the engines' pods and where they are.
        proof: returns the deployment's token.
    """
    change = decide(facts)
    active = facts.active
    if change.action is None or active is None or not addresses.get(active.name):
        return ""
    request = ModelRequest(action=change.action, model=change.model, blind=change.blind)
    _LOG.info("%s: %s model %s", active.name, change.action, change.model[:12])
    try:
        answer = ask(
            at(addresses[active.name], HTTP_PORT),
            PATH,
            method="POST",
            body=request.encode(),
            token=proof(),
            timeout_s=ANSWER,
        )
        told = SwitchoverAnswer.model_validate_json(answer.body)
    except NoAnswerError as error:
        return str(error)
    except ValidationError:
        return f"{active.name} is of an espha that cannot change its model"
    return "" if told.code < 400 else told.message

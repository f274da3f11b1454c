"""Another model for an engine, and the order log's way to it."""

import http.client
import json
import re
from pathlib import Path
from typing import Any

from espha.local import replicas
from espha.local.ports import HOST
from espha.model import model_digest
from espha.protocol.model_change import PATH
from espha.reader import read_project
from support.replicas import LIMIT_S


def digest(xml: str) -> str:
    """Return the digest of a model."""
    return model_digest(read_project(xml))


def refusing(sample: str) -> str:
    """Return the sample model with a script that raises on each row."""
    return re.sub(
        r'(?s)<window-calculate name="sum20".*?(<schema>.*?</schema>).*?</window-calculate>',
        r"""<window-python name="sum20">\1
    <code>def create(data, context): raise ValueError("no row is good enough")</code>
    </window-python>""",
        sample,
    )


def give(engine: replicas.Replica, model: Path) -> None:
    """Make an engine's pod anew, with another model."""
    engine.stop()
    engine.environment["ESPHA_MODEL"] = str(model)
    engine.start()


def ask(engine: replicas.Replica, action: str, model: str) -> tuple[int, dict[str, Any]]:
    """Ask a supervisor for a change of the model; return the HTTP code and the answer."""
    connection = http.client.HTTPConnection(HOST, engine.port, timeout=LIMIT_S)
    connection.request("POST", PATH, json.dumps({"action": action, "model": model}))
    answer = connection.getresponse()
    return answer.status, json.load(answer)

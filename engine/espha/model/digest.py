"""What makes two models the same."""

import hashlib
import json
from typing import Any

from espha.model.project import Project


def model_digest(project: Project) -> str:
    """Return the SHA-256 (64 hex digits) of everything in the model that an engine uses.

    Layout, comments, metadata, line numbers and the spelling of expressions do not count; the
    order of windows, edges and fields does, because events are processed in it.
    """
    content = _without_lines(project.model_dump(mode="json", exclude={"warnings"}))
    # A list keeps the order of the windows, which sorted keys would lose.
    content["windows"] = list(content["windows"].items())
    text = json.dumps(content, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def _without_lines(content: Any) -> Any:
    if isinstance(content, dict):
        return {name: _without_lines(part) for name, part in content.items() if name != "line"}
    if isinstance(content, list | tuple):
        return [_without_lines(part) for part in content]
    return content

"""The window types: the one list of them, and of those that are refused.

A window type is a folder:

- `spec.py` has `WINDOW`, which reads its XML; it never imports stages, so whoever only reads
  models (the operator, `espha check`) does not pull them in.
- `stages.py` has `stages`, which makes what runs it.
- `docs.md` is its part of the reference.
- `example.xml` is its part of the project with every window type, which tests run.

Reader, kernel, graph, Python models, reference and tests follow from the list.
"""

from collections.abc import Mapping
from importlib import import_module
from typing import Final, cast

from espha.windows.shared.spec import WindowType

_FOLDERS: Final = (
    "source",
    "filter",
    "compute",
    "copy",
    "union",
    "aggregate",
    "join",
    "functional",
    "pattern",
    "calculate",
    "counter",
    "remove_state",
    "transpose",
    "geofence",
    "lua",
    "python",
    "custom",
    "procedural",
    "notification",
)
"""In the order of the reference."""


def _window_type(folder: str) -> WindowType:
    return cast(WindowType, import_module(f"espha.windows.{folder}.spec").WINDOW)


WINDOWS: Final[Mapping[str, WindowType]] = {
    window_type.name: window_type for window_type in map(_window_type, _FOLDERS)
}
"""By the word after `window-` in the XML."""

_SCORING = "analytic stores are not run; use window-calculate, window-python or a score as data"
_TEXTS = "SAS text analytics are not run"

REFUSED_WINDOWS: Final[Mapping[str, str]] = {
    "train": "models are not trained; use window-calculate, window-python or a score as data",
    "score": _SCORING,
    "model-reader": _SCORING,
    "model-supervisor": _SCORING,
    "object-tracker": "video and images are not processed",
    "textcontext": _TEXTS,
    "textcategory": _TEXTS,
    "textsentiment": _TEXTS,
    "texttopic": _TEXTS,
}
"""Window types of the language that are not supported, and why."""

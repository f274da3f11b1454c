"""A window of the model to the stages that run it."""

from espha.model.project import (
    AnyWindow,
    CalculateWindow,
    ComputeWindow,
    Field,
    FilterWindow,
    FunctionalWindow,
    SourceWindow,
)
from espha.windows.compute import Compute
from espha.windows.filter import Filter
from espha.windows.functional import PassOn
from espha.windows.index import Index
from espha.windows.source import Intake
from espha.windows.stage import Collapse, Stage
from espha.windows.summary import Summary


def build_stages(window: AnyWindow, feed: tuple[Field, ...]) -> list[Stage]:
    """Return the stages of a window, in the order of processing.

    Args:
        window: the window.
        feed: the schema of the window that feeds it; empty for a source.
    """
    stages = _transformation(window, feed)
    if window.stateful:
        stages.append(Index(window.fields))
    if window.collapse_updates:
        stages.append(Collapse())
    return stages


def _transformation(window: AnyWindow, feed: tuple[Field, ...]) -> list[Stage]:
    if isinstance(window, SourceWindow):
        return [Intake(window)]
    if isinstance(window, FilterWindow):
        return [Filter(window)]
    if isinstance(window, ComputeWindow):
        return [Compute(window, feed)]
    if isinstance(window, FunctionalWindow):
        return [PassOn(window, feed)]
    if isinstance(window, CalculateWindow):
        return [Summary(window, feed)]
    return []  # a copy only keeps rows, and that is its index

"""Runs a model whose scripts share something: properties, snippets, events that they publish."""

import re
from collections.abc import Collection, Sequence
from typing import Any, Final

from espha.kernel.flow import Outputs
from espha.kernel.kernel import Handled, Kernel, State
from espha.model import Project
from espha.model.events import BadRecord, Event
from espha.model.project import Window
from espha.windows.shared.library import Snippet
from espha.windows.shared.script_spec import Code
from espha.windows.shared.world import MAX_PUBLISHED, ProjectWorld, Sharing

_SHARES: Final = re.compile(
    r"\besp_(?:[gs]etProperty|removeProperty|addPropertyListener|publish|publishAsync|query|call|subscribe)\b"
)


def kernel_of(project: Project, published: Collection[str] | None = None) -> Kernel:
    """Return what runs a model; see `Kernel`."""
    snippets = [
        snippet
        for snippet in project.snippets
        if isinstance(snippet, Snippet) and snippet.language == "lua"
    ]
    if not snippets and not any(map(_shares, project.windows.values())):
        return Kernel(project, published)
    return SharingKernel(project, published, snippets)


def _shares(window: Window) -> bool:
    codes = [getattr(part, "code", None) for part in (window, window.splitter)]
    return any(isinstance(code, Code) and _SHARES.search(code.text) for code in codes)


class SharingKernel(Kernel):
    """A kernel whose scripts share something.

    When an event has gone through all windows, snippets see what has left the windows to which
    they subscribe; then what scripts have published goes through the windows in the same way.
    """

    def __init__(
        self, project: Project, published: Collection[str] | None, snippets: Sequence[Snippet]
    ) -> None:
        """Start with empty state; see `Kernel`."""
        super().__init__(project, project.windows)
        if published is None:
            published = [path for path, window in project.windows.items() if window.kafka("sub")]
        self._wanted = frozenset(published)
        self._world = ProjectWorld(project, snippets, self._rows)
        for node in self._line:
            for part in (*node.stages, node.slots):
                if isinstance(part, Sharing):
                    part.share(self._world)

    def _rows(self, path: str) -> Sequence[Any]:
        for stage in self._nodes[path].stages:
            rows = getattr(stage, "by_key", None)
            if isinstance(rows, dict):
                return list(rows.values())
        return ()

    def publish(self, path: str, event: Event, clock: int) -> Outputs:
        """Put one event into a source window, then what follows of it; see `Kernel`."""
        return self._before(clock) + self._settled(super().publish(path, event, clock))

    def _before(self, clock: int) -> Outputs:
        """Return what comes before an event, whether or not a window takes it."""
        outputs = self.advance(clock) if clock > self._at.clock else []
        self._world.begin(clock, self._tokens)
        return outputs + self._settled(self._published(self._world.take()))

    def publish_block(self, events: Sequence[tuple[str, Event]], clock: int) -> list[Handled]:
        """Put events into source windows, one by one: each can change what the next one meets."""
        handled: list[Handled] = []
        self._culprit = handled.__len__
        for path, event in events:
            outputs, bad = self._before(clock), None
            try:
                outputs += self._settled(super().publish(path, event, clock))
            except BadRecord as refusal:
                bad = refusal.reason
            handled.append(Handled(outputs, bad, self.take_refusals()))
        return handled

    def advance(self, clock: int) -> Outputs:
        """Let time pass; see `Kernel`."""
        if clock <= self._at.clock:
            return []
        outputs = super().advance(clock)
        self._world.expire(clock)
        return self._settled(outputs)

    def due(self) -> int | None:
        """Return the clock at which something is to do next; see `Kernel`."""
        times = [due for due in (super().due(), self._world.due()) if due is not None]
        return min(times, default=None)

    def _settled(self, outputs: Outputs) -> Outputs:
        """Return the outputs and all that scripts make of them, as far as it is wanted."""
        wanted: Outputs = []
        left = MAX_PUBLISHED
        while True:
            wanted += [each for each in outputs if each[0] in self._wanted]
            if outputs:
                self._world.saw(outputs)
            events = self._world.take()
            if not events:
                return wanted
            for path, _ in events[left:]:
                reason = f"scripts published more than {MAX_PUBLISHED} events because of one"
                self._flow.refusals.append((path, reason))
            events = events[:left]
            left -= len(events)
            outputs = self._published(events)

    def _published(self, events: Sequence[tuple[str, Event]]) -> Outputs:
        outputs: Outputs = []
        for path, event in events:
            bad = self._run(self._sources[path], event, outputs)
            if bad is not None:
                self._flow.refusals.append((path, bad))
        return outputs

    def state(self) -> State:
        """Return all state; see `Kernel`."""
        return {**super().state(), "world": self._world.state()}

    def restore(self, state: State) -> None:
        """Become the kernel that returned `state`; see `Kernel`."""
        super().restore(state)
        self._world.restore(state["world"])

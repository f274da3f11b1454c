"""Procedural windows."""

from collections.abc import Sequence
from typing import Any

from espha.model.events import BadRecord
from espha.model.project import Field
from espha.windows.shared.mas_spec import ProceduralWindow
from espha.windows.shared.script import Scripted
from espha.windows.shared.stage import Moment, Stage, Unit


def stages(window: ProceduralWindow, feeds: Sequence[tuple[Field, ...]]) -> list[Stage]:
    """Return the stages of a window with mapped modules."""
    return [Modules(window, feeds)]


class Modules:
    """Gives each event to the module that its input is mapped to."""

    def __init__(self, window: ProceduralWindow, feeds: Sequence[tuple[Field, ...]]) -> None:
        codes = (window.code, *window.more)
        self._modules = [
            Scripted(window.model_copy(update={"code": code}), feeds) for code in codes
        ]
        self._of_port = [
            next(number for number, code in enumerate(codes) if code.functions[port])
            for port in range(len(feeds))
        ]

    def process(self, unit: Unit, at: Moment) -> Sequence[Unit]:
        """Return what the module makes of the event."""
        return self._modules[self._of_port[at.port]].process(unit, at)

    def process_block(
        self, units: Sequence[Unit], moments: Sequence[Moment]
    ) -> Sequence[Sequence[Unit] | BadRecord]:
        """Return what the modules make of one event after the other."""
        results: list[Sequence[Unit] | BadRecord] = [()] * len(units)
        for number, module in enumerate(self._modules):
            places = [place for place, at in enumerate(moments) if self._of_port[at.port] == number]
            made = module.process_block(
                [units[place] for place in places], [moments[place] for place in places]
            )
            for place, result in zip(places, made, strict=True):
                results[place] = result
        return results

    def settle(self) -> None:
        """Bring the variables of the modules here."""
        for module in self._modules:
            module.settle()

    def state(self) -> Any:
        """Return the variables of the modules."""
        return [module.state() for module in self._modules]

    def restore(self, state: Any) -> None:
        """Put the variables back."""
        for module, part in zip(self._modules, state, strict=True):
            module.restore(part)

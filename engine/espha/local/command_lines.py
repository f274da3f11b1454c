"""Adapters by command lines of SAS Event Stream Processing, run on this machine."""

import os
import sys
from collections.abc import Callable
from pathlib import Path

from espha.adapters.command_lines import prepare
from espha.adapters.common import run_adapter, topic_of
from espha.adapters.config import ConfigError
from espha.adapters.translation import Given
from espha.deployment import DeploymentError, read_deployed
from espha.ha.spawner import CommandSpawner
from espha.ha.supervisor import supervise
from espha.jsonlog import configure
from espha.protocol.control import STATUS_FD_VARIABLE
from espha.protocol.settings import SettingsError


def run_command_line(
    program: str,
    words: list[str],
    given: Given,
    model: Path | None,
    say: Callable[[str], None],
) -> int:
    """Run an adapter under a supervisor in this process; as its child, the adapter itself.

    Args:
        program: name of the adapter, `dfesp_fs_adapter`.
        words: what stands behind it.
        given: what is said beside them.
        model: its XML; None: `ESPHA_MODEL`.
        say: takes a line for people.

    Returns:
        2: the command line is refused; the sentences have been said. Otherwise it exits itself.
    """
    configure()
    try:
        ready = prepare(program, words, given, model)
        told = ready.settings
        deployed = read_deployed(told.model, told.prefix, told.deployment)
        topic_of(ready.config, deployed, ready.project)
    except (ConfigError, DeploymentError, SettingsError) as error:
        say(str(error))
        return 2
    if STATUS_FD_VARIABLE in os.environ:
        run_adapter(told, lambda: ready.config, ready.project)
        return 0
    for note in ready.notes:
        say(f"note: {note}")
    os.environ.update(told.environment())
    child = [sys.executable, "-m", "espha.cli", *sys.argv[1:]]
    supervise(told, CommandSpawner(child), ready.election)
    return 0

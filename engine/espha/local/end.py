"""`espha local down` and `espha local kill`: end what is ours, and nothing else."""

import shutil
import signal
import time
from typing import Literal

from espha.local.errors import LocalError
from espha.local.processes import Identity, family, identify, sweep
from espha.local.replicas import child_of, jvm_of
from espha.local.state import Folder

What = Literal["engine", "supervisor", "jvm"]
_DAEMON_S = 60.0
_LOOK_S = 0.1


def down(folder: Folder, *, delete: bool) -> int:
    """End a deployment; its state stays, unless it is to be deleted.

    Returns:
        How many processes had to be ended that no daemon looked after.

    Raises:
        LocalError: there is no deployment, or it does not end.
    """
    spec = folder.spec()
    daemon = folder.running().daemon
    if folder.is_held() and daemon is not None:
        daemon.signal(signal.SIGTERM)
        deadline = time.monotonic() + _DAEMON_S
        while daemon.alive and time.monotonic() < deadline:
            time.sleep(_LOOK_S)
        daemon.signal(signal.SIGKILL)
    left = sweep(spec.id, 5.0)
    if delete:
        shutil.rmtree(folder.path)
    return left


def kill(folder: Folder, name: str, what: What | None, *, note: bool = True) -> float:
    """Kill a process with SIGKILL, as a fault would; the daemon starts it again.

    Args:
        folder: of the deployment.
        name: of an engine, an adapter or a server.
        what: of an engine: its process, the JVM, or the supervisor with all that is below.
        note: tell the checker.

    Returns:
        The moment, in seconds since 1970.

    Raises:
        LocalError: there is nothing of that name, or it does not run.
    """
    spec = folder.spec()
    if name not in spec.names():
        raise LocalError(f"{name!r} is not one of: {', '.join(spec.names())}")
    if what is not None and name in spec.server_names():
        raise LocalError(f"--what is for engines and adapters; {name} is one process")
    if what == "jvm" and name not in spec.engine_names():
        raise LocalError(f"{name} has no JVM")
    started = folder.running().processes.get(name)
    if started is None or not started.identity.alive:
        raise LocalError(f"{name} does not run")
    victims = _victims(started.identity, name, name in spec.server_names(), what)
    moment = time.time()
    for victim in victims:
        victim.signal(signal.SIGKILL)
    if note:
        folder.note_fault(_title(name, what), moment)
    return moment


def _victims(process: Identity, name: str, server: bool, what: What | None) -> list[Identity]:
    if server:
        return [process]
    if what == "supervisor":
        found = [identify(pid) for pid in family(process.pid)]
        return [one for one in found if one is not None]
    try:
        pid = jvm_of(process.pid) if what == "jvm" else child_of(process.pid)
    except LookupError:
        raise LocalError(f"{name} starts just now: there is nothing to kill") from None
    victim = identify(pid)
    if victim is None or not process.alive:
        raise LocalError(f"{name} has just ended by itself")
    return [victim]


def _title(name: str, what: What | None) -> str:
    words = {"supervisor": "whole pod of ", "jvm": "JVM of "}
    return f"{words.get(what or '', '')}{name} killed"


def what_of(text: str | None) -> What | None:
    """Read `--what`.

    Raises:
        LocalError: it is nothing that can be killed.
    """
    if text in (None, "engine", "supervisor", "jvm"):
        return text  # type: ignore[return-value]
    raise LocalError(f"--what {text!r} is not one of: engine, supervisor, jvm")

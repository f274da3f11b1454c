"""What the commands do, with something to see meanwhile."""

import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

from rich.console import Console
from rich.live import Live

from espha.local.errors import LocalError
from espha.local.gaps import LastGap
from espha.local.jars import archive_later
from espha.local.look import Look, look_at
from espha.local.state import Folder
from espha.local.up import UpOptions, prepare, start, wait_ready
from espha.local.view import picture

_WATCH_S = 1.0
_TAIL_BYTES = 1 << 18


def bring_up(options: UpOptions, *, foreground: bool = False) -> Folder:
    """Bring a deployment up; return when it is ready, or with `foreground` when it has ended.

    Raises:
        LocalError: it does not come up; the text says why.
    """
    console, began = Console(stderr=True), time.monotonic()

    def say(text: str) -> None:
        console.print(text, markup=False, highlight=False)

    with Progress(console, began) as progress:
        folder = prepare(options, say)
        start(folder)
        try:
            look = wait_ready(folder, progress.show)
        except KeyboardInterrupt:
            say("it goes on coming up: `espha local status` shows it, `espha local down` ends it")
            raise
    archive_later(folder.spec().jars)
    say(f"{look.sentence()}; ready after {time.monotonic() - began:.1f} s")
    if foreground:
        _stay(folder)
    return folder


class Progress:
    """One line that says how far it is; on what is no terminal, a line for each change."""

    def __init__(self, console: Console, began: float) -> None:
        self._console, self._began, self._told = console, began, ""
        self._spinner = console.status("checking")

    def __enter__(self) -> "Progress":
        if self._console.is_terminal:
            self._spinner.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._spinner.stop()

    def show(self, look: Look) -> None:
        """Show what was seen."""
        text = f"{look.phase}: {look.sentence()}"
        if text == self._told:
            return
        self._told = text
        if self._console.is_terminal:
            self._spinner.update(text)
        else:
            passed = time.monotonic() - self._began
            self._console.print(f"[{passed:5.1f} s] {text}", markup=False, highlight=False)


def _stay(folder: Folder) -> None:
    """Stay until Ctrl-C, or until the daemon ends; end everything then."""
    daemon = folder.running().daemon
    try:
        while daemon and daemon.alive:
            time.sleep(_WATCH_S / 4)
    except KeyboardInterrupt:
        if daemon:
            daemon.signal(signal.SIGTERM)
            while daemon.alive:
                time.sleep(_WATCH_S / 4)


def show_status(path: Path, *, watch: bool) -> bool:
    """Show a deployment; return whether all is ready.

    Raises:
        LocalError: there is none.
    """
    folder = Folder(path)
    spec, console = folder.spec(), Console()
    gaps = LastGap(folder, spec)
    look = look_at(folder, spec)
    if look.phase == "down":
        console.print(picture(look, None, ""))
        console.print("it does not run: `espha local up` goes on where it was", highlight=False)
        return False
    before, look = look, _next(folder)
    if not watch:
        console.print(picture(look, before, gaps.words(look.epoch())))
        return look.ready
    with Live(console=console, auto_refresh=False) as live:
        while True:
            live.update(picture(look, before, gaps.words(look.epoch())), refresh=True)
            before, look = look, _next(folder)


def _next(folder: Folder) -> Look:
    time.sleep(_WATCH_S)
    return look_at(folder, folder.spec())


def log_of(path: Path, name: str) -> Path:
    """Return the log of a process.

    Raises:
        LocalError: there is no such process, or it has said nothing yet.
    """
    folder = Folder(path)
    names = ["daemon", *folder.spec().names()]
    if name not in names:
        raise LocalError(f"{name!r} is not one of: {', '.join(names)}")
    log = folder.path / "daemon.log" if name == "daemon" else folder.logs / f"{name}.log"
    if not log.exists():
        raise LocalError(f"{name} has not said anything yet")
    return log


def tail(path: Path, lines: int, say: Callable[[str], None]) -> int:
    """Print the last lines of a file; return where it ended."""
    with path.open("rb") as file:
        end = file.seek(0, os.SEEK_END)
        file.seek(max(0, end - _TAIL_BYTES))
        text = file.read().decode(errors="replace")
    for line in text.splitlines()[-lines:]:
        say(line)
    return end

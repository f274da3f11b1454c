"""`espha local …`: the command line of this room."""

import time
from functools import partial
from pathlib import Path
from typing import Annotated, Literal

import typer

app = typer.Typer(
    help="Run a whole deployment on this machine: Kafka, ZooKeeper, engines and adapters as "
    "plain processes.",
    no_args_is_help=True,
)

# Each command imports what it needs: `espha check` must not wait for Kafka's client.

FolderOption = Annotated[
    Path,
    typer.Option("--folder", envvar="ESPHA_LOCAL_FOLDER", help="Where the deployment lives"),
]
_FOLDER = Path(".espha")
_WATCH_S = 1.0


@app.command()
def up(
    *,
    model: Annotated[
        Path | None,
        typer.Argument(
            help="The XML of the model; without it, go on where it was", metavar="[MODEL.xml]"
        ),
    ] = None,
    inputs: Annotated[
        list[str] | None,
        typer.Option(
            "--input",
            metavar="WINDOW=FILE[,OPTION]…",
            help="A growing CSV file for a source window. Options: header=N, noopcode, "
            "noautogenfield, dateformat=…, delimiter=…, noflags",
        ),
    ] = None,
    outputs: Annotated[
        list[str] | None,
        typer.Option(
            "--output",
            metavar="WINDOW=FILE[,header]",
            help="Write what leaves a window as CSV; header is a first line with the names, "
            "header=full also opcode and flags",
        ),
    ] = None,
    settings: Annotated[
        list[str] | None, typer.Option("--set", metavar="NAME=VALUE", help="Value of @NAME@")
    ] = None,
    engines: Annotated[int, typer.Option(min=1, max=9, help="Number of engines")] = 3,
    brokers: Annotated[
        int, typer.Option(metavar="1|3", help="Number of brokers, and of ZooKeeper servers")
    ] = 1,
    folder: FolderOption = _FOLDER,
    foreground: Annotated[bool, typer.Option(help="Stay here; Ctrl-C ends everything")] = False,
) -> None:
    """Bring a deployment up, and return when it is ready."""
    from espha.local.actions import bring_up
    from espha.local.errors import LocalError
    from espha.local.up import UpOptions

    if brokers not in (1, 3):
        raise typer.BadParameter(f"--brokers {brokers}: 1 or 3")
    servers: Literal[1, 3] = 3 if brokers == 3 else 1
    options = UpOptions(
        folder=folder,
        model=model,
        settings=settings or (),
        inputs=inputs or (),
        outputs=outputs or (),
        engines=engines,
        brokers=servers,
    )
    with _sentences(LocalError):
        bring_up(options, foreground=foreground)


@app.command()
def status(
    folder: FolderOption = _FOLDER,
    watch: Annotated[bool, typer.Option("--watch", "-w", help="Go on until Ctrl-C")] = False,
) -> None:
    """Show engines, adapters and servers; ends with 0 when all is ready, else with 1."""
    from espha.local.actions import show_status
    from espha.local.errors import LocalError

    with _sentences(LocalError):
        raise typer.Exit(0 if show_status(folder, watch=watch) else 1)


@app.command()
def kill(
    name: Annotated[str, typer.Argument(help="An engine, an adapter or a server", metavar="NAME")],
    what: Annotated[
        str | None,
        typer.Option(
            metavar="engine|supervisor|jvm",
            help="The engine process, or the supervisor and all below it, or the engine's JVM",
        ),
    ] = None,
    folder: FolderOption = _FOLDER,
) -> None:
    """Kill a process with SIGKILL; it is started again as a cluster would do it."""
    from espha.local.end import kill as strike
    from espha.local.end import what_of
    from espha.local.errors import LocalError
    from espha.local.state import Folder

    with _sentences(LocalError):
        strike(Folder(folder), name, what_of(what))
        typer.echo(f"{name}: killed" + (f" ({what})" if what else ""), err=True)


@app.command()
def switchover(
    to: Annotated[
        str | None, typer.Option(metavar="NAME", help="The engine that is to be active next")
    ] = None,
    wait: Annotated[float, typer.Option(metavar="SECONDS", min=0, help="Wait so long")] = 30,
    folder: FolderOption = _FOLDER,
) -> None:
    """Let the active engine hand over; ends with 0 when another one is active."""
    from espha.ha.switchover import switch_over
    from espha.local.errors import LocalError
    from espha.local.ports import HOST
    from espha.local.state import Folder

    with _sentences(LocalError):
        place = Folder(folder)
        spec = place.spec()
        addresses = [f"{HOST}:{spec.port(name)}" for name in spec.engine_names()]
        place.note_fault("switchover")
        raise typer.Exit(switch_over(addresses, to, "", wait, partial(typer.echo, err=True)))


@app.command()
def verify(
    folder: FolderOption = _FOLDER,
    sum_window: Annotated[
        list[str] | None, typer.Option(help="FIELD:LENGTH:OUTPUT, a sum over the last rows")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON")] = False,
) -> None:
    """Compare what came out with what must come out; exits with 1 when anything is wrong."""
    from espha.local.check import verify as check
    from espha.local.errors import LocalError
    from espha.local.state import Folder

    with _sentences(LocalError):
        raise typer.Exit(check(Folder(folder), tuple(sum_window or ()), as_json=as_json))


@app.command()
def logs(
    name: Annotated[str, typer.Argument(help="An engine, an adapter, a server, or daemon")],
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on until Ctrl-C")] = False,
    lines: Annotated[int, typer.Option("--lines", "-n", min=1, help="How many lines")] = 50,
    folder: FolderOption = _FOLDER,
) -> None:
    """Print the end of a process's log."""
    from espha.local.actions import log_of, tail
    from espha.local.errors import LocalError

    with _sentences(LocalError):
        path = log_of(folder, name)
        place = tail(path, lines, typer.echo)
        while follow:
            time.sleep(_WATCH_S / 4)
            with path.open("rb") as log:
                log.seek(min(place, path.stat().st_size))
                typer.echo(log.read().decode(errors="replace"), nl=False)
                place = log.tell()


@app.command()
def down(
    folder: FolderOption = _FOLDER,
    delete: Annotated[bool, typer.Option("--delete", help="Delete its state, too")] = False,
) -> None:
    """End everything; `espha local up` goes on where it was."""
    from espha.local.end import down as end
    from espha.local.errors import LocalError
    from espha.local.state import Folder

    with _sentences(LocalError):
        end(Folder(folder), delete=delete)
        kept = "its state is deleted" if delete else "`espha local up` goes on where it was"
        typer.echo(f"{folder}: all has ended; {kept}", err=True)


@app.command()
def demo(
    folder: FolderOption = Path(".espha-demo"),
    keep: Annotated[bool, typer.Option(help="Leave the deployment up at the end")] = False,
) -> None:
    """Feed a deployment real input, kill its active engine twice, and show what came out."""
    from espha.local.demo import run
    from espha.local.errors import LocalError

    with _sentences(LocalError):
        raise typer.Exit(run(folder, keep=keep))


class _sentences:  # noqa: N801 - used like a function
    """Turns what people can mend into one sentence and exit code 2, Ctrl-C into 130."""

    def __init__(self, error: type[Exception]) -> None:
        self._error = error

    def __enter__(self) -> None:
        """Begin."""

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        """Say it."""
        from espha.local.state import sentence

        if isinstance(error, self._error):
            typer.echo(f"espha: {error}", err=True)
            raise typer.Exit(2) from None
        if isinstance(error, OSError):
            typer.echo(f"espha: {sentence(error)}", err=True)
            raise typer.Exit(2) from None
        if isinstance(error, KeyboardInterrupt):
            raise typer.Exit(130) from None

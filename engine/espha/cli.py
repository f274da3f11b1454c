"""The `espha` command."""

from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from espha.runtime.settings import Settings

app = typer.Typer(
    name="espha",
    help="Highly available event-stream processing.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)

# Each command imports what it needs: `espha check` must not wait for Spark.


@app.command(context_settings={"ignore_unknown_options": True})
def supervise(
    child: Annotated[list[str], typer.Argument(help="An espha command, or a program by its path")],
    election: Annotated[bool, typer.Option(help="Stand for election in ZooKeeper")] = True,
) -> None:
    """Run a child process, in the election for the active role; serve status over HTTP."""
    import sys

    from espha.runtime.supervisor import supervise as run

    program = child if "/" in child[0] else [sys.executable, "-m", "espha.cli", *child]
    run(_settings(), program, election)


@app.command()
def engine() -> None:
    """Run an engine: follow the order log as a standby, write it when active."""
    from espha.runtime.main import run_engine

    run_engine(_settings())


def _settings() -> "Settings":
    """Read the environment, or end with a sentence for each variable that is wrong."""
    from espha.runtime.logs import configure
    from espha.runtime.settings import SettingsError, load_settings

    configure()
    try:
        return load_settings()
    except SettingsError as error:
        typer.echo(str(error), err=True)
        raise typer.Exit(2) from None


def main() -> None:
    """Run the command line."""
    app()


if __name__ == "__main__":
    main()

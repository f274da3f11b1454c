"""The `espha` command."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from espha.local.commands import app as local

if TYPE_CHECKING:
    from espha.dead_letters.letters import Wanted
    from espha.protocol.settings import Settings

app = typer.Typer(
    name="espha",
    help="Highly available event-stream processing.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)

# Each command imports what it needs: `espha check` must not wait for Spark.


ModelArgument = Annotated[Path, typer.Argument(help="The XML of the model", metavar="MODEL.xml")]
SetOption = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="NAME=VALUE", help="Value of @NAME@; wins over the project's"),
]


@app.command()
def check(
    model: ModelArgument,
    settings: SetOption = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON")] = False,
) -> None:
    """Read a model; print its windows, or end with 2 and every problem with its line."""
    from espha.offline.checking import check as run
    from espha.offline.command import guarded

    raise typer.Exit(
        guarded(lambda: run(model, settings or (), typer.echo, _say, as_json=as_json), _say)
    )


@app.command(name="run")
def run_model(
    *,
    model: ModelArgument,
    settings: SetOption = None,
    inputs: Annotated[
        list[str] | None,
        typer.Option(
            "--input",
            metavar="WINDOW=FILE[,OPTION]…",
            help="Publish a file to a source window. Options: header=N, noopcode, "
            "noautogenfield, dateformat=…, delimiter=…, block=N, upsert, noflags, json. "
            "Several are published in the order given, each to its end",
        ),
    ] = None,
    traces: Annotated[
        list[str] | None,
        typer.Option("--trace", metavar="WINDOW=FILE", help="Write what leaves a window as CSV"),
    ] = None,
    watched: Annotated[
        list[str] | None,
        typer.Option("--watch", metavar="WINDOW", help="Print what leaves a window, as a table"),
    ] = None,
    plots: Annotated[
        list[str] | None,
        typer.Option(
            "--plot",
            metavar="WINDOW[:FIELD,…]=FILE",
            help="Draw fields of a window over time (.png, .svg or .pdf); needs espha[plot]",
        ),
    ] = None,
    connectors: Annotated[
        bool, typer.Option(" /--no-connectors", help="Leave the model's own connectors alone")
    ] = True,
    until_idle: Annotated[
        float | None,
        typer.Option(
            metavar="SECONDS",
            min=0,
            help="Go on until no event has flowed for so many seconds; rates and timers then "
            "follow the clock, which otherwise leaps to their next event",
        ),
    ] = None,
    endless: Annotated[
        int,
        typer.Option(
            metavar="N", min=1, help="End timers and scripts without an end after N events"
        ),
    ] = 1_000,
    engine: Annotated[
        str,
        typer.Option(
            metavar="spark|kernel",
            help="Run as an engine does, on Spark, or the kernel alone, which starts at once and "
            "gives the same; by default Spark where it is installed",
        ),
    ] = "",
) -> None:
    """Run a model on files, without Kafka and Kubernetes.

    Ends with 0 when all finite inputs are done, with 1 when a file could not be read or written
    on the way, with 2 when the model or the command line is refused, with 130 after Ctrl-C.
    """
    import sys

    import structlog
    from rich.console import Console

    from espha.offline.command import RunOptions, guarded
    from espha.offline.command import run as run_on_files

    structlog.configure(logger_factory=lambda *_: structlog.PrintLogger(sys.stderr))
    options = RunOptions(
        model=model,
        settings=settings or (),
        inputs=inputs or (),
        traces=traces or (),
        watched=watched or (),
        plots=plots or (),
        connectors=connectors,
        idle_s=until_idle,
        endless=endless,
        engine=engine,
    )
    console = Console(stderr=True)
    raise typer.Exit(guarded(lambda: run_on_files(options, console), _say))


@app.command()
def graph(
    model: ModelArgument,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE.svg", help="By default beside the model"),
    ] = None,
    settings: SetOption = None,
) -> None:
    """Draw the windows and edges of a model, as SVG."""
    from espha.offline.command import graph as draw
    from espha.offline.command import guarded

    raise typer.Exit(guarded(lambda: draw(model, settings or (), output, _say), _say))


@app.command(context_settings={"ignore_unknown_options": True})
def supervise(
    child: Annotated[
        list[str],
        typer.Argument(help="An espha command, with or without `espha`, or a program by its path"),
    ],
    election: Annotated[bool, typer.Option(help="Stand for election in ZooKeeper")] = True,
) -> None:
    """Run a child process, in the election for the active role; serve status over HTTP."""
    import sys

    from espha.ha.spawner import CommandSpawner, ForkServerSpawner, Spawner
    from espha.ha.supervisor import supervise as run

    child = child[1:] if child[0] == "espha" else child
    if not child:
        raise typer.BadParameter("it has to say which command", param_hint="CHILD…")
    spawner: Spawner
    if child == ["engine"]:
        spawner = ForkServerSpawner([sys.executable, "-m", "espha.engine.fork_server"])
    elif "/" in child[0]:
        spawner = CommandSpawner(child)
    else:
        spawner = CommandSpawner([sys.executable, "-m", "espha.cli", *child])
    run(_settings(), spawner, election)


@app.command()
def engine() -> None:
    """Run an engine: follow the order log as a standby, write it when active."""
    from espha.engine.main import run_engine

    run_engine(_settings())


@app.command()
def switchover(
    to: Annotated[
        str | None, typer.Option(metavar="NAME", help="The engine that is to be active next")
    ] = None,
    address: Annotated[
        str, typer.Option(metavar="HOST:PORT", help="An engine's supervisor")
    ] = "127.0.0.1:8080",
    peers: Annotated[
        str,
        typer.Option(envvar="ESPHA_PEERS", help="Supervisors of the others, if it is a standby"),
    ] = "",
    wait: Annotated[float, typer.Option(metavar="SECONDS", min=0, help="Wait so long")] = 30,
) -> None:
    """Let the active engine hand over; ends with 0 when another one is active.

    Asks supervisors on other machines with the token in ESPHA_TOKEN.
    """
    import os

    from espha.ha.switchover import switch_over
    from espha.protocol.http import addresses

    token = os.environ.get("ESPHA_TOKEN", "")
    code = switch_over([address, *addresses(peers)], to, token, wait, typer.echo)
    raise typer.Exit(code)


adapter = typer.Typer(help="Bring events in and results out.", no_args_is_help=True)
app.add_typer(adapter, name="adapter")
sample = typer.Typer(help="Make sample input.", no_args_is_help=True)
app.add_typer(sample, name="sample")
app.add_typer(local, name="local")

ConfigOption = Annotated[Path, typer.Option("--config", help="The adapter's configuration (JSON)")]


@adapter.command("input")
def adapter_input(config: ConfigOption) -> None:
    """Publish rows to a source window's topic, each one once."""
    from espha.adapters.common import run_adapter
    from espha.adapters.config import load
    from espha.adapters.types import InputConfig

    run_adapter(_settings(), lambda: load(config, InputConfig))


@adapter.command("output")
def adapter_output(config: ConfigOption) -> None:
    """Bring out what a window publishes, each record once."""
    from espha.adapters.common import run_adapter
    from espha.adapters.config import load
    from espha.adapters.types import OutputConfig

    run_adapter(_settings(), lambda: load(config, OutputConfig))


AdapterNameOption = Annotated[
    str, typer.Option("--name", help="Name of the adapter; by default of its group, or its file")
]
KafkaCfgOption = Annotated[
    Path | None,
    typer.Option("--kafka-cfg", metavar="FILE", help="Instead of the one that the command names"),
]
DatabaseOption = Annotated[
    str,
    typer.Option(
        "--database",
        metavar="URL|FILE",
        help="For adapters of tables: postgresql://[USER@]HOST[:PORT]/DATABASE, or a file of "
        "SQLite; by default that of the command",
    ),
]
AdapterModelOption = Annotated[
    Path | None, typer.Option("--model", metavar="FILE", help="The model's XML; else ESPHA_MODEL")
]


@adapter.command("explain")
def adapter_explain(
    command: Annotated[str, typer.Argument(help="'dfesp_fs_adapter -k pub -h dfESP://…'")],
    name: AdapterNameOption = "",
    kafka_cfg: KafkaCfgOption = None,
    database: DatabaseOption = "",
) -> None:
    """Print what a command line of SAS Event Stream Processing is as a configuration of ours.

    The configuration goes to standard output, everything else to standard error. Ends with 2 when
    a part is not understood or cannot be done, and names each of them.
    """
    from espha.adapters.command_lines import explain
    from espha.adapters.translation import Given

    raise typer.Exit(explain(command, Given(name, kafka_cfg, database), typer.echo, _say))


@adapter.command("run", context_settings={"ignore_unknown_options": True})
def adapter_run(
    *,
    program: Annotated[str, typer.Argument(help="dfesp_fs_adapter")],
    words: Annotated[list[str] | None, typer.Argument(help="Its switches", metavar="…")] = None,
    name: AdapterNameOption = "",
    kafka_cfg: KafkaCfgOption = None,
    database: DatabaseOption = "",
    model: AdapterModelOption = None,
) -> None:
    """Run a command line of SAS Event Stream Processing as it is written.

    Where its kafka.cfg says hotfailover, adapters of the same failovergroup elect one that
    publishes. The environment (ESPHA_BOOTSTRAP, …) wins over kafka.cfg.
    """
    from espha.adapters.translation import Given
    from espha.local.command_lines import run_command_line

    given = Given(name, kafka_cfg, database)
    raise typer.Exit(run_command_line(program, words or [], given, model, _say))


_PLACE = "--type pub|sub --url dfESP://HOST:PORT/PROJECT/QUERY/WINDOW"


def _adapter_command(kind: str, program: str, what: str, options: str) -> None:
    """Make the command that runs one kind of adapter by properties of connectors."""

    @adapter.command(kind, help=what, context_settings={"ignore_unknown_options": True})
    def run(
        words: Annotated[
            list[str], typer.Argument(help=f"{_PLACE} {options}, and others", metavar="…")
        ],
        name: AdapterNameOption = "",
        kafka_cfg: KafkaCfgOption = None,
        database: DatabaseOption = "",
        model: AdapterModelOption = None,
    ) -> None:
        from espha.adapters.translation import Given
        from espha.local.command_lines import run_command_line

        given = Given(name, kafka_cfg, database)
        raise typer.Exit(run_command_line(program, words, given, model, _say))


_adapter_command(
    "file",
    "dfesp_fs_adapter",
    "Publish a file, or write one, with the properties of an fs connector as options.",
    "--fsname FILE; or the switches of dfesp_fs_adapter",
)
_adapter_command(
    "socket",
    "socket",
    "Take lines over TCP, or send them, with the properties of an fs connector as options.",
    "[--host HOST] --port PORT --fstype csv|json --ids true|false",
)
_adapter_command(
    "http",
    "http",
    "Take rows over HTTP (type pub), or post them to a server (type sub).",
    "--port PORT or --address http[s]://HOST/PATH, --fstype csv|json",
)
_adapter_command(
    "kafka",
    "kafka",
    "Read a topic of another Kafka cluster, or write one, with the properties of a kafka "
    "connector as options.",
    "--kafkahostport HOST:PORT --kafkatopic TOPIC --kafkatype csv|json",
)
_adapter_command(
    "mqtt",
    "mqtt",
    "Subscribe to topics of a broker of MQTT, or publish to one, with the properties of an mqtt "
    "connector as options.",
    "--mqtthost HOST --mqttport PORT --mqtttopic TOPIC --mqttmsgtype csv|json --mqttqos 1|2",
)
_adapter_command(
    "table",
    "table",
    "Write a table of a database, a row for each key.",
    "--desttablename TABLE",
)


@adapter.command("send")
def adapter_send(
    to: Annotated[str, typer.Argument(help="The adapter", metavar="HOST:PORT")],
    stream: Annotated[
        str, typer.Option(help="What the adapter knows this input by; the same one goes on")
    ],
    timeout: Annotated[
        float, typer.Option(min=0.1, max=600, help="Seconds without an answer, then again")
    ] = 30,
) -> None:
    """Send lines of standard input to an input adapter of sockets with `ids`, each one once.

    Ends with 0 when all of them are published. An adapter that is away is waited for. After a
    kill, send the same input again under the same name: what is published is passed over.
    """
    from espha.local.standard_input import send_standard_input

    raise typer.Exit(send_standard_input(to, stream, timeout, _say))


@sample.command("memory")
def sample_memory(
    file: Annotated[Path, typer.Option(help="CSV file to append to")],
    rate: Annotated[float, typer.Option(help="Rows a second", min=0.001, max=10_000)] = 10,
    rows: Annotated[int | None, typer.Option(help="End after this many rows", min=1)] = None,
) -> None:
    """Append this machine's memory figures to a CSV file, row by row."""
    from espha.local.sample import append_memory

    try:
        append_memory(file, rate, rows)
    except OSError as error:
        typer.echo(f"{file}: {error.strerror}", err=True)
        raise typer.Exit(1) from None


@app.command()
def verify(
    *,
    bootstrap: Annotated[str, typer.Option(envvar="ESPHA_BOOTSTRAP", help="Kafka servers")],
    model: Annotated[Path, typer.Option(envvar="ESPHA_MODEL", help="The model's XML")] = Path(
        "/etc/espha/model.xml"
    ),
    prefix: Annotated[str, typer.Option(envvar="ESPHA_PREFIX", help="Topic prefix")] = "",
    deployment: Annotated[
        str, typer.Option(envvar="ESPHA_DEPLOYMENT", help="NAMESPACE/NAME")
    ] = "default/espha",
    source: Annotated[str, typer.Option(help="Source window, if there are several")] = "",
    window: Annotated[str, typer.Option(help="Output window, if there are several")] = "",
    sum_window: Annotated[
        list[str] | None, typer.Option(help="FIELD:LENGTH:OUTPUT, a sum over the last rows")
    ] = None,
    input_file: Annotated[Path | None, typer.Option(help="Source file to compare with")] = None,
    header_lines: Annotated[int, typer.Option(help="Header lines of the source file")] = 1,
    output_file: Annotated[Path | None, typer.Option(help="Result file to compare with")] = None,
    faults: Annotated[Path | None, typer.Option(help="File of lines 'TIME NAME'")] = None,
    follow: Annotated[bool, typer.Option(help="Watch the output live first")] = False,
    until_idle: Annotated[float, typer.Option(help="Stop watching after quiet seconds")] = 5.0,
    values: Annotated[
        bool, typer.Option(help="Recompute the outputs; else only the order log's digests count")
    ] = True,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON")] = False,
) -> None:
    """Compare what came out with what must come out; exits with 1 when anything is wrong."""
    from espha.checker.command import VerifyOptions, run_verify

    options = VerifyOptions(
        bootstrap=bootstrap,
        model=model,
        prefix=prefix,
        deployment=deployment,
        source=source,
        window=window,
        sums=tuple(sum_window or ()),
        source_file=input_file,
        header_lines=header_lines,
        result_file=output_file,
        faults=faults,
        until_idle=until_idle if follow else None,
        values=values,
    )
    raise typer.Exit(run_verify(options, as_json))


dlq = typer.Typer(help="Look at dead letters, and replay them.", no_args_is_help=True)
app.add_typer(dlq, name="dlq")

BootstrapOption = Annotated[str, typer.Option(envvar="ESPHA_BOOTSTRAP", help="Kafka servers")]
ModelOption = Annotated[Path, typer.Option(envvar="ESPHA_MODEL", help="The model's XML")]
PrefixOption = Annotated[str, typer.Option(envvar="ESPHA_PREFIX", help="Topic prefix")]
DeploymentOption = Annotated[str, typer.Option(envvar="ESPHA_DEPLOYMENT", help="NAMESPACE/NAME")]
WindowFilter = Annotated[
    str, typer.Option("--window", metavar="[QUERY/]WINDOW", help="Those of this window")
]
SourceFilter = Annotated[
    str, typer.Option("--source", help="Those from input topics with this in their name")
]
ReasonFilter = Annotated[str, typer.Option("--reason", help="Those with this in their reason")]
SinceFilter = Annotated[
    str, typer.Option("--since", metavar="15m|2h|7d|TIME", help="Those written since then (UTC)")
]
LettersArgument = Annotated[
    list[int], typer.Argument(help="Offsets, as `espha dlq list` shows them", metavar="OFFSET")
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON, an object a line")]
DryRunOption = Annotated[bool, typer.Option("--dry-run", help="Only say what would be done")]
_MODEL = Path("/etc/espha/model.xml")


@dlq.command("list")
def dlq_list(
    *,
    bootstrap: BootstrapOption,
    model: ModelOption = _MODEL,
    prefix: PrefixOption = "",
    deployment: DeploymentOption = "default/espha",
    window: WindowFilter = "",
    source: SourceFilter = "",
    reason: ReasonFilter = "",
    since: SinceFilter = "",
    limit: Annotated[int, typer.Option(min=1, max=10_000, help="At most the newest N")] = 50,
    as_json: JsonOption = False,
) -> None:
    """List dead letters: what was refused, by which window, and why."""
    from espha.dead_letters.command import run_list
    from espha.deployment import Place

    place = Place(bootstrap, model, prefix, deployment)
    wanted = _wanted(window, source, reason, since)
    raise typer.Exit(run_list(place, wanted, limit, as_json=as_json))


@dlq.command("show")
def dlq_show(
    *,
    letters: LettersArgument,
    bootstrap: BootstrapOption,
    model: ModelOption = _MODEL,
    prefix: PrefixOption = "",
    deployment: DeploymentOption = "default/espha",
    as_json: JsonOption = False,
) -> None:
    """Show dead letters with their payload, and where the input adapter was in its source.

    Ends with 1 when one of them is not there.
    """
    from espha.dead_letters.command import run_show
    from espha.deployment import Place

    place = Place(bootstrap, model, prefix, deployment)
    raise typer.Exit(run_show(place, letters, as_json=as_json))


@dlq.command("replay")
def dlq_replay(
    *,
    letters: Annotated[
        list[int] | None, typer.Argument(help="Offsets of letters", metavar="OFFSET")
    ] = None,
    bootstrap: BootstrapOption,
    model: ModelOption = _MODEL,
    prefix: PrefixOption = "",
    deployment: DeploymentOption = "default/espha",
    every: Annotated[
        bool, typer.Option("--all", help="All letters, or all that the filters leave")
    ] = False,
    window: WindowFilter = "",
    source: SourceFilter = "",
    reason: ReasonFilter = "",
    since: SinceFilter = "",
    again: Annotated[bool, typer.Option("--again", help="Also what was replayed before")] = False,
    set_aside: Annotated[
        bool, typer.Option("--set-aside", help="Also records that have ended engines")
    ] = False,
    dry_run: DryRunOption = False,
    as_json: JsonOption = False,
) -> None:
    """Write dead letters to the input topics that they came from, each one once.

    They go to the end of the topic, with their message id in the header espha-replay. Ends with 1
    when one of them is refused, which says why.
    """
    from espha.dead_letters.command import run_replay
    from espha.dead_letters.replay import Choice
    from espha.deployment import Place

    filtered = bool(window or source or reason or since)
    if bool(letters) == every or (filtered and not every):
        _say("give offsets, or --all with or without filters")
        raise typer.Exit(2)
    place = Place(bootstrap, model, prefix, deployment)
    wanted = _wanted(window, source, reason, since) if every else None
    choice = Choice(again=again, set_aside=set_aside)
    code = run_replay(place, letters or [], wanted, choice, rehearse=dry_run, as_json=as_json)
    raise typer.Exit(code)


@app.command()
def skip(
    *,
    bootstrap: BootstrapOption,
    model: ModelOption = _MODEL,
    prefix: PrefixOption = "",
    deployment: DeploymentOption = "default/espha",
    window: Annotated[
        str, typer.Option("--window", metavar="QUERY/WINDOW", help="Source window; by default all")
    ] = "",
    to: Annotated[
        str,
        typer.Option(
            metavar="oldest|newest|OFFSET",
            help="Where to go on: at the oldest record there is, behind the newest one, or there",
        ),
    ] = "oldest",
    dry_run: DryRunOption = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON")] = False,
) -> None:
    """Have the engines go on at a later place of their input, for good.

    For input that retention has removed before it was processed: engines end and name it, and
    never leave it out by themselves. The engine that leads is fenced, and another one takes over.
    """
    from espha.deployment import Place
    from espha.recovery.skip_command import run_skip

    place = Place(bootstrap, model, prefix, deployment)
    raise typer.Exit(run_skip(place, window, to, dry_run=dry_run, as_json=as_json))


def _wanted(window: str, source: str, reason: str, since: str) -> "Wanted":
    from espha.dead_letters.command import since_ms
    from espha.dead_letters.letters import Wanted

    try:
        return Wanted(window, source, reason, since_ms(since))
    except ValueError as error:
        _say(f"--since: {error}")
        raise typer.Exit(2) from None


def _say(text: str) -> None:
    typer.echo(text, err=True)


def _settings() -> "Settings":
    """Read the environment, or end with a sentence for each variable that is wrong."""
    from espha.jsonlog import configure
    from espha.protocol.settings import SettingsError, load_settings

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

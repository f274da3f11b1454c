"""`espha verify`: read, judge, report."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from espha.checker.expect import SumWindow
from espha.checker.gaps import Fault, parse_fault
from espha.checker.judge import Evidence, judge, judge_order
from espha.checker.report import Report
from espha.checker.watch import Followed, Moving, follow, read_all, read_written
from espha.connectors.topics import TopicPlan
from espha.deployment import DeploymentError, read_deployed
from espha.kafka.reader import Offsets
from espha.model import Window, model_digest


class VerifyError(Exception):
    """The checker cannot work as it was asked to; the text says what to change."""


@dataclass(frozen=True, slots=True)
class VerifyOptions:
    """What to verify; the fields are the options of `espha verify`.

    Without `values` nothing is recomputed: the order log's digests say what must be there.
    """

    bootstrap: str
    model: Path
    prefix: str = ""
    deployment: str = "default/espha"
    source: str = ""
    window: str = ""
    sums: tuple[str, ...] = ()
    source_file: Path | None = None
    header_lines: int = 1
    result_file: Path | None = None
    faults: Path | None = None
    until_idle: float | None = None
    values: bool = True


def verify(options: VerifyOptions, progress: Callable[[int], None] = lambda rows: None) -> Report:
    """Do it; with `until_idle` the output is followed live first.

    Raises:
        VerifyError: an option does not fit the model, or a file cannot be read.
        LogError: a topic cannot be read.
    """
    try:
        _, project, plan = read_deployed(options.model, options.prefix, options.deployment)
    except DeploymentError as error:
        raise VerifyError(str(error)) from None
    sources = _chosen(plan.inputs, options.source, "source window", options.values)
    targets = _chosen(plan.outputs, options.window, "output window", options.values)
    source, target = (project.windows[next(iter(each))] for each in (sources, targets))
    sums = _sums(options.sums, source, target) if options.values else []
    followed = Followed()
    if options.until_idle is not None:
        followed = _follow(options, plan, sources, targets, progress)
    evidence = _evidence(options, plan, sources, targets, followed)
    if not options.values:
        return judge_order(evidence)
    _expect_whole(evidence, [*sources.values(), *targets.values()])
    return judge(replace(evidence, model=model_digest(project)), source, target, sums)


def _follow(
    options: VerifyOptions,
    plan: TopicPlan,
    sources: dict[str, str],
    targets: dict[str, str],
    progress: Callable[[int], None],
) -> Followed:
    files = [path for path in (options.source_file, options.result_file) if path is not None]
    others = [*sources.values(), plan.dead_letters]
    sizes = [_size_of(path) for path in files]
    moving = Moving(options.bootstrap, others, plan.order_log, sizes)
    return follow(
        options.bootstrap, list(targets.values()), moving, options.until_idle or 0, progress
    )


def _evidence(
    options: VerifyOptions,
    plan: TopicPlan,
    sources: dict[str, str],
    targets: dict[str, str],
    followed: Followed,
) -> Evidence:
    partitions = _partitions(options.bootstrap, plan)
    # The order log first: what it names is on the other topics by then.
    order = read_all(options.bootstrap, plan.order_log)
    written = {
        topic: read_written(options.bootstrap, topic)
        for topic in (*plan.outputs.values(), plan.dead_letters)
    }
    # Whoever runs goes on meanwhile.
    known = order[-1].offset + 1 if order else 0
    later = read_all(options.bootstrap, plan.order_log, known)
    outputs = [each.read() for topic in targets.values() for each in written[topic]]
    dead = [each.read() for each in written[plan.dead_letters]]
    own = tuple(f"{topic}:" for topic in sources.values())
    rows = {topic: read_all(options.bootstrap, topic) for topic in plan.inputs.values()}
    # Last of all: what was removed while the topics were read is gone, too.
    offsets = Offsets(options.bootstrap)
    read = [*plan.inputs.values(), *plan.outputs.values(), plan.order_log, plan.dead_letters]
    return Evidence(
        trimmed=[topic for topic in read if offsets.first(topic) > 0],
        input_topic=next(iter(sources.values())),
        inputs=[each for topic in sources.values() for each in rows[topic]],
        offsets={topic: [each.offset for each in reads] for topic, reads in rows.items()},
        partitions=partitions,
        drained=options.until_idle is not None,
        order_log=plan.order_log,
        outputs=followed.outputs or outputs,
        dead=[each for each in dead if each.id.startswith(own)],
        order=[each.value for each in order],
        later=[each.value for each in later],
        written=written,
        arrivals=followed.arrivals,
        faults=read_faults(options.faults),
        source_file=options.source_file,
        result_file=options.result_file,
        header_lines=options.header_lines,
    )


def _expect_whole(evidence: Evidence, topics: Sequence[str]) -> None:
    """Refuse to recompute what depends on records that have been removed.

    Raises:
        VerifyError: with the topic.
    """
    cut = next((topic for topic in topics if topic in evidence.trimmed), None)
    if cut is not None:
        raise VerifyError(
            f"topic {cut}: its first records have been removed (spec.topics.retention), so values "
            "cannot be recomputed; --no-values leaves them to the order log's digests"
        )


def _partitions(bootstrap: str, plan: TopicPlan) -> dict[str, int]:
    offsets = Offsets(bootstrap)
    topics = [topic for topic in plan.of_engines() if topic != plan.scratch]
    return {topic: offsets.partitions(topic) for topic in topics}


def read_faults(path: Path | None) -> list[Fault]:
    """Read a file of `TIME NAME` lines; no file, no faults.

    Raises:
        VerifyError: a line has no time.
    """
    if path is None or not path.exists():
        return []
    try:
        return [parse_fault(line) for line in path.read_text().splitlines() if line.strip()]
    except ValueError as error:
        raise VerifyError(f"{path}: {error}") from None


def _size_of(path: Path) -> Callable[[], int]:
    return lambda: path.stat().st_size if path.exists() else 0


def _chosen(topics: dict[str, str], path: str, what: str, one: bool) -> dict[str, str]:
    """Return the window that is asked for, or all of them where `one` is not needed."""
    known = ", ".join(topics) or "none"
    if not path and (len(topics) == 1 or (topics and not one)):
        return topics
    if path not in topics:
        raise VerifyError(f"{what} {path!r} is not in the model (there are: {known})")
    return {path: topics[path]}


def _sums(texts: Sequence[str], source: Window, target: Window) -> list[SumWindow]:
    try:
        sums = [SumWindow.parse(text) for text in texts]
    except ValueError as error:
        raise VerifyError(f"--sum-window {error}") from None
    fields = {field.name for field in source.fields}
    outputs = {field.name for field in target.fields}
    for each in sums:
        if each.field not in fields:
            raise VerifyError(f"--sum-window: {source.path} has no field {each.field!r}")
        if each.output not in outputs:
            raise VerifyError(f"--sum-window: {target.path} has no field {each.output!r}")
    unknown = outputs - fields - {each.output for each in sums}
    if unknown:
        raise VerifyError(
            f"{target.path} has fields that nothing explains: {', '.join(sorted(unknown))}. "
            "Name sums with --sum-window FIELD:LENGTH:OUTPUT; other computations are not known, "
            "and --no-values leaves them to the order log's digests"
        )
    return sums

"""Rows of the sample model, what must come of them, and commands on its deployment."""

from collections.abc import Sequence

from typer.testing import CliRunner

from espha.cli import app
from support.deployment import SAMPLE_MODEL, Deployment
from support.servers import wait_until

SOURCE, OUTPUT = "cq/memory", "cq/outbound"
_LENGTH = 20
"""Rows over which the model adds up."""


def publish(deployment: Deployment, *counters: int) -> None:
    """Publish rows with these counters, in one transaction."""
    deployment.publish(SOURCE, [f"I,N,,{counter},1,2,3" for counter in counters])


def expected(counters: Sequence[int]) -> list[str]:
    """Return the outputs of rows with these counters, computed here; the key counts rows."""
    sums = [sum(counters[max(0, at - _LENGTH + 1) : at + 1]) for at in range(len(counters))]
    pairs = zip(counters, sums, strict=True)
    return [f"I,N, {at},{one},1,2,3,{total:.6f}" for at, (one, total) in enumerate(pairs)]


def processed(deployment: Deployment, rows: int) -> None:
    """Wait until every engine has processed so many rows."""
    wait_until(
        lambda: all(one.status().get("events_in") == rows for one in deployment.engines),
        120,
        f"all engines have {rows} rows",
    )


def espha(deployment: Deployment, *words: str) -> tuple[int, str]:
    """Run a command on the deployment; return its exit code and what it prints."""
    place = ["--bootstrap", deployment.kafka.bootstrap, "--model", str(SAMPLE_MODEL)]
    result = CliRunner().invoke(app, [*words, *place, "--prefix", deployment.name])
    return result.exit_code, result.output

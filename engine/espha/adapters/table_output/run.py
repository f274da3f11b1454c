"""Writes what a window publishes into a table."""

from espha.adapters.config import Job
from espha.adapters.copying import copy
from espha.adapters.table_output.databases import engine_for, name_of
from espha.adapters.table_output.spec import OutputTable
from espha.adapters.table_output.table import TableTarget


def run(job: Job, place: OutputTable) -> None:
    """Run the adapter until the process is ended; see `espha.adapters.config.Runner`."""
    copy(
        job,
        name_of(place),
        lambda identity: TableTarget(
            place,
            job.window,
            job.topic,
            identity,
            engine_for(place),
            moved=job.control.doing.moved,
        ),
    )

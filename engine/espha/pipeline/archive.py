"""An archive of the JVM's classes: `python -m espha.pipeline.archive`.

Loading and checking some 15,000 classes is half of what an engine's start costs in processor time.
The JVM can write them down at the end of one run and map them in the next (class data sharing);
an archive that does not fit the JVM or its class path is passed over.
"""

import os
from pathlib import Path
from typing import Any

from espha.connectors.topics import topic_plan
from espha.pipeline.jars import archive_beside, unfinished
from espha.pipeline.job import Batch, BatchJob, Input
from espha.pipeline.session import open_session
from espha.pipeline.transactions import Transactions
from espha.reader import read_project

_MODEL = """<project name="p" index="pi_EMPTY"><contqueries><contquery name="q"><windows>
<window-source name="in"><schema-string>id*:int64,x:double,s:string</schema-string></window-source>
<window-copy name="out"><connectors><connector class="kafka" name="c"><properties>
<property name="type">sub</property></properties></connector></connectors></window-copy>
</windows><edges><edge source="in" target="out"/></edges></contquery></contqueries></project>"""
_BATCHES = 20


def main() -> None:
    """Run a few batches, and have the JVM write its archive when it ends."""
    jars = Path(os.environ.get("ESPHA_JARS", "/opt/espha/jars"))
    session = open_session("local[1]", jars, write_archive=True)
    project = read_project(_MODEL)
    plan = topic_plan(project, "p")
    # Kafka's client takes part without brokers: most of its classes belong to its making.
    Transactions(session, "127.0.0.1:9", plan.order_log).close()
    job = BatchJob(session, _MODEL, project, plan, collect=False)
    inputs = [Input(plan.inputs["q/in"], 0, b"I,N,1,2.5,text")]
    for number in range(_BATCHES):
        job.run([Batch(number or None, number + 1, 0, inputs)])
    job.close()
    gateway: Any = session.sparkContext._gateway
    session.stop()
    gateway.proc.stdin.close()
    gateway.proc.wait()
    archive = archive_beside(jars)
    unfinished(archive).replace(archive)
    print(archive)


if __name__ == "__main__":
    main()

"""The Spark session of an engine, tuned for small batches, and its way to Kafka's Admin client."""

import os
import sys
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from espha.pipeline.stream import BUFFER_BYTES, PAGE_ROWS

_SETTINGS = {
    # Python workers over unix domain sockets: TCP's delayed ACK costs 40 ms a batch.
    "spark.python.unix.domain.socket.enabled": "true",
    # Input is written while output is read: the job is one long talk with its worker.
    "spark.python.udf.pipelined.enabled": "true",
    # Nothing waits in a buffer for more: a page is sent when it is written.
    "spark.sql.execution.pandas.udf.buffer.size": str(BUFFER_BYTES),
    # The kernel's state lives in the worker: one worker, one task, no shuffle.
    "spark.sql.leafNodeDefaultParallelism": "1",
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.adaptive.enabled": "false",
    "spark.task.maxFailures": "1",
    # A page, as the worker gets it; by rows alone, so that batches end where pages do.
    "spark.sql.execution.arrow.maxRecordsPerBatch": str(PAGE_ROWS),
    "spark.sql.execution.arrow.maxBytesPerBatch": str((1 << 31) - 2),
    # A bad number gives null and a dead letter, never a failed batch.
    "spark.sql.ansi.enabled": "false",
    # Pruned columns would hide malformed records from from_csv and from_json.
    "spark.sql.optimizer.enableCsvExpressionOptimization": "false",
    "spark.sql.optimizer.enableJsonExpressionOptimization": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.memory": "512m",
}
_JAVA: tuple[str, ...] = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xss2m")
"""Small batches run best on quickly compiled code."""


def archive_beside(jars: Path) -> Path:
    """Return where the archive of the JVM's classes is, if there is one."""
    return jars.parent / "espha.jsa"


def open_session(master: str, jars: Path, *, write_archive: bool = False) -> SparkSession:
    """Start the JVM and a session.

    Args:
        master: Spark's master.
        jars: the directory with the engine's jars.
        write_archive: let the JVM write an archive of its classes when it ends.
    """
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    os.environ["PYSPARK_PYTHON"] = sys.executable  # workers must be of this very Python
    builder = SparkSession.builder.master(master).appName("espha")
    for key, value in _SETTINGS.items():
        builder = builder.config(key, value)
    names = [*jars.glob("kafka-clients-*.jar"), *jars.glob("espha-*.jar")]
    builder = builder.config("spark.driver.extraClassPath", ":".join(map(str, sorted(names))))
    archive = archive_beside(jars)
    if write_archive:
        java = (*_JAVA, f"-XX:ArchiveClassesAtExit={archive}")
    elif archive.exists():
        java = (*_JAVA, f"-XX:SharedArchiveFile={archive}", "-Xshare:auto", "-Xlog:cds=off")
    else:
        java = _JAVA
    builder = builder.config("spark.driver.extraJavaOptions", " ".join(java))
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("WARN")
    return session


class FastFence:
    """Fences a transactional id through Java's Admin client, in milliseconds.

    librdkafka pauses for 500 ms after each answer «still aborting»; the Admin client asks again
    after 5 ms. Where kafka-clients is not on the JVM's class path, `fence` does nothing, and the
    writer's own fencing takes its time.
    """

    def __init__(self, session: SparkSession, bootstrap: str) -> None:
        self._jvm: Any = session._jvm
        self._admin: Any = None
        if not hasattr(self._jvm.org.apache.kafka.clients.admin.Admin, "create"):
            return
        properties = self._jvm.java.util.Properties()
        for key, value in {
            "bootstrap.servers": bootstrap,
            "retry.backoff.ms": "5",
            "retry.backoff.max.ms": "20",
            "reconnect.backoff.ms": "10",
            "reconnect.backoff.max.ms": "100",
            "request.timeout.ms": "5000",
            "default.api.timeout.ms": "20000",
        }.items():
            properties.setProperty(key, value)
        self._admin = self._jvm.org.apache.kafka.clients.admin.Admin.create(properties)
        self._admin.describeCluster().clusterId().get()  # connects now, not in a take-over

    def fence(self, transactional_id: str) -> None:
        """Abort the id's open transaction and shut out its holder.

        Raises:
            py4j.protocol.Py4JJavaError: the brokers did not answer.
        """
        if self._admin is not None:
            ids = self._jvm.java.util.Collections.singletonList(transactional_id)
            self._admin.fenceProducers(ids).all().get()

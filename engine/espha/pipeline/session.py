"""The Spark session of an engine, tuned for small batches."""

import os
import sys
from pathlib import Path
from typing import Any

from pyspark import SparkConf, SparkContext
from pyspark.sql import SparkSession

from espha.jvm import FRESH_DNS, LARGE_PAGES, LATE_COMPILER, SERIAL, class_archive
from espha.pipeline import gateway
from espha.pipeline.jars import archive_beside, unfinished
from espha.pipeline.stream import BUFFER_BYTES, PAGE_BYTES
from espha.protocol.settings import HEAP_MIB, local_master

_SETTINGS = {
    # Python workers over unix domain sockets: TCP's delayed ACK costs 40 ms a batch.
    "spark.python.unix.domain.socket.enabled": "true",
    # Input is written while output is read: the job is one long talk with its worker.
    "spark.python.udf.pipelined.enabled": "true",
    # The end of a call waits in no buffer for more.
    "spark.sql.execution.pandas.udf.buffer.size": str(BUFFER_BYTES),
    # The kernel's state lives in the worker: one worker, one task, no shuffle.
    "spark.sql.leafNodeDefaultParallelism": "1",
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.adaptive.enabled": "false",
    "spark.task.maxFailures": "1",
    # A page, as the worker gets it; what ends a call is large enough to end its page.
    "spark.sql.execution.arrow.maxRecordsPerBatch": "0",
    "spark.sql.execution.arrow.maxBytesPerBatch": str(PAGE_BYTES),
    # A bad number gives null and a dead letter, never a failed batch.
    "spark.sql.ansi.enabled": "false",
    # Pruned columns would hide malformed records from from_csv and from_json.
    "spark.sql.optimizer.enableCsvExpressionOptimization": "false",
    "spark.sql.optimizer.enableJsonExpressionOptimization": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    # Nobody asks for these counters.
    "spark.metrics.executorMetricsSource.enabled": "false",
    "spark.metrics.staticSources.enabled": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    # There is nothing to clean, and its cleaner would have the JVM stop for a full collection of
    # garbage every half hour.
    "spark.cleaner.referenceTracking": "false",
    # Each worker begins as one that has imported everything, and has seen nothing.
    "spark.python.daemon.module": "espha.pipeline.daemon",
    "spark.python.worker.reuse": "false",
}
_WORKER_ENDED = (
    "Python worker exited unexpectedly",
    "org.apache.spark.api.python.PythonException",
)
"""What Spark says of a worker that has died, and of one in which an error went uncaught."""
_JAVA: tuple[str, ...] = (
    SERIAL,
    LARGE_PAGES,
    # Rows cost half of what they do with the quick compiler alone.
    *LATE_COMPILER,
    *FRESH_DNS,
    "-Xss2m",
    # Counters for tools outside, which wake a thread twenty times a second.
    "-XX:-UsePerfData",
)


def open_session(
    master: str, jars: Path, *, heap_mib: int = HEAP_MIB, write_archive: bool = False
) -> SparkSession:
    """Open a session: on the JVM that runs already (`start_jvm`), or on a new one.

    Args:
        master: Spark's master.
        jars: the directory with the engine's jars.
        heap_mib: heap of a new JVM, MiB.
        write_archive: let the JVM write an archive of its classes when it ends, as `unfinished`.

    Raises:
        ValueError: an engine cannot run on that master.
        pyspark.errors.PySparkRuntimeError: a new JVM ended at once; what it said is in the log.
    """
    conf, held = _conf(master), None
    if gateway.PORT in os.environ:
        SparkContext._ensure_initialized()
        jvm: Any = SparkContext._jvm
        held = jvm.JavaSparkContext.fromSparkContext(
            jvm.org.apache.spark.SparkContext.getOrCreate()
        )
    elif SparkContext._gateway is None:
        started = gateway.start(*_started_with(jars, heap_mib, write_archive=write_archive))
        SparkContext._ensure_initialized(gateway=started)
    context = SparkContext(conf=conf, jsc=held)
    session = SparkSession(context, _bare_session(context))
    session.sparkContext.setLogLevel("WARN")
    return session


def start_jvm(master: str, jars: Path, heap_mib: int = HEAP_MIB) -> "Jvm":
    """Start a JVM, with Spark in it, for sessions of processes that are forked from this one.

    Raises:
        ValueError: an engine cannot run on that master.
        pyspark.errors.PySparkRuntimeError: it ended at once; what it said stands in the log.
    """
    conf = _conf(master)
    started = gateway.start(*_started_with(jars, heap_mib))
    wanted = started.jvm.SparkConf()
    for key, value in conf.getAll():
        wanted.set(key, value)
    started.jvm.org.apache.spark.SparkContext.getOrCreate(wanted)
    parameters = started.gateway_parameters
    os.environ[gateway.PORT] = str(parameters.port)
    os.environ[gateway.SECRET] = parameters.auth_token
    return Jvm(started)


def _bare_session(context: Any) -> Any:
    """Return a session of the JVM without extensions.

    Spark would look for some, and find those of its library for machine learning, which nobody
    asks for here: a tenth of what an engine's start costs the JVM in processor time.
    """
    jvm = context._jvm
    none = getattr(getattr(jvm.scala, "None$"), "MODULE$")
    no_options = getattr(getattr(jvm.scala.collection.immutable, "Map$"), "MODULE$").empty()
    spark = jvm.org.apache.spark
    return spark.sql.classic.SparkSession(
        context._jsc.sc(), none, none, spark.sql.SparkSessionExtensions(), no_options, no_options
    )


class Jvm:
    """A JVM that outlives the processes that use it."""

    def __init__(self, gateway: Any) -> None:
        self._gateway = gateway
        self.pid: int = gateway.proc.pid

    def clear(self) -> None:
        """End what a dead process has begun here, and left.

        Raises:
            py4j.protocol.Py4JError: it does not end, or the JVM does not answer.
        """
        jvm = self._gateway.jvm
        jvm.dev.espha.Channel.end()
        # Spark would tell, with a stack trace, that it cannot bring its counters to the dead.
        logs = jvm.org.apache.logging.log4j.core.config.Configurator
        scheduler = "org.apache.spark.scheduler.DAGScheduler"
        logs.setLevel(scheduler, jvm.org.apache.logging.log4j.Level.OFF)
        jvm.dev.espha.BatchStream.end()
        logs.setLevel(scheduler, jvm.org.apache.logging.log4j.Level.WARN)

    def let_go(self) -> None:
        """Hold it alive no longer; for a forked process, whose end it shall not wait for."""
        self._gateway.proc.stdin.close()


def worker_ended(error: BaseException) -> bool:
    """Tell whether a query has failed because its Python worker has ended, however that came.

    The JVM is as good then as it was before.
    """
    return any(said in str(error) for said in _WORKER_ENDED)


def _conf(master: str) -> SparkConf:
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    os.environ["PYSPARK_PYTHON"] = sys.executable  # workers must be of this very Python
    conf = SparkConf(loadDefaults=False).setMaster(local_master(master)).setAppName("espha")
    return conf.setAll(list(_SETTINGS.items()))


def _started_with(
    jars: Path, heap_mib: int, *, write_archive: bool = False
) -> tuple[list[str], list[Path]]:
    """Return the options of an engine's JVM, and the jars that come before those of Spark."""
    archive = archive_beside(jars)
    options = [f"-Xmx{heap_mib}m", *_JAVA]
    if write_archive:
        options.append(f"-XX:ArchiveClassesAtExit={unfinished(archive)}")
    elif archive.exists():
        options += class_archive(archive)
    return options, sorted([*jars.glob("kafka-clients-*.jar"), *jars.glob("espha-*.jar")])

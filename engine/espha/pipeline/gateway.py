"""Starts a JVM that listens to PySpark, and connects to it.

PySpark itself does so with `spark-submit`: a JVM that makes a command line, and then one that reads
what to submit from it, looks for jars and sets up its log twice. It also has each worker import
PySpark from an archive of sources, which are compiled at each start. Together that was a fifth of
what the start of an engine costs in processor time.
"""

import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import pyspark
from pyspark.errors import PySparkRuntimeError
from pyspark.java_gateway import launch_gateway
from pyspark.serializers import UTF8Deserializer, read_int

from espha.jvm import java_program

PORT: Final = "PYSPARK_GATEWAY_PORT"
"""PySpark connects to the JVM behind this port, where it is set."""
SECRET: Final = "PYSPARK_GATEWAY_SECRET"  # noqa: S105 - the name of a variable
SPARK_OPTIONS: Final = (
    "-XX:+IgnoreUnrecognizedVMOptions",
    "--add-modules=jdk.incubator.vector",
    "--add-opens=java.base/java.lang=ALL-UNNAMED",
    "--add-opens=java.base/java.lang.invoke=ALL-UNNAMED",
    "--add-opens=java.base/java.lang.reflect=ALL-UNNAMED",
    "--add-opens=java.base/java.io=ALL-UNNAMED",
    "--add-opens=java.base/java.net=ALL-UNNAMED",
    "--add-opens=java.base/java.nio=ALL-UNNAMED",
    "--add-opens=java.base/java.util=ALL-UNNAMED",
    "--add-opens=java.base/java.util.concurrent=ALL-UNNAMED",
    "--add-opens=java.base/java.util.concurrent.atomic=ALL-UNNAMED",
    "--add-opens=java.base/jdk.internal.ref=ALL-UNNAMED",
    "--add-opens=java.base/sun.nio.ch=ALL-UNNAMED",
    "--add-opens=java.base/sun.nio.cs=ALL-UNNAMED",
    "--add-opens=java.base/sun.security.action=ALL-UNNAMED",
    "--add-opens=java.base/sun.util.calendar=ALL-UNNAMED",
    "--add-opens=java.security.jgss/sun.security.krb5=ALL-UNNAMED",
    "-Dio.netty.tryReflectionSetAccessible=true",
    "-Dio.netty.allocator.type=pooled",
    "-Dio.netty.handler.ssl.defaultEndpointVerificationAlgorithm=NONE",
    "--sun-misc-unsafe-memory-access=allow",
    "--enable-native-access=ALL-UNNAMED",
    "-Dderby.connection.requireAuthentication=false",
)
"""What Spark's launcher has a JVM of Java 17 or newer start with."""
_MAIN = "org.apache.spark.api.python.PythonGatewayServer"
_CONNECTION = "_PYSPARK_DRIVER_CONN_INFO_PATH"
_LOOK_S = 0.02


def start(options: Sequence[str], class_path: Sequence[Path]) -> Any:
    """Start a JVM and return PySpark's gateway to it; `proc` is its process.

    It ends when its standard input is closed, that is with this process.

    Args:
        options: of Java.
        class_path: jars that come before those of Spark.

    Raises:
        pyspark.errors.PySparkRuntimeError: it ended at once; what it said stands in the log.
        OSError: there is no Java, or it cannot be started.
    """
    spark = Path(pyspark.__file__).parent / "jars"
    # As Spark's launcher: others of its jars have some of these classes, too.
    first = sorted(spark.glob("slf4j-api-*.jar"))
    jars = ":".join(map(str, [*class_path, *first, spark / "*"]))
    command = [java_program(), "-cp", jars, *options, *SPARK_OPTIONS, _MAIN]
    folder = Path(tempfile.mkdtemp())
    try:
        told = folder / "connection"
        process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            env=_environment(os.environ, told),
            preexec_fn=_ignore_interrupts,  # noqa: PLW1509 - as PySpark does
        )
        while not told.exists():
            if process.poll() is not None:
                raise PySparkRuntimeError(errorClass="JAVA_GATEWAY_EXITED", messageParameters={})
            time.sleep(_LOOK_S)
        with told.open("rb") as lines:
            port, secret = str(read_int(lines)), UTF8Deserializer().loads(lines)
    finally:
        shutil.rmtree(folder)
    os.environ |= {PORT: port, SECRET: secret}
    try:
        gateway = launch_gateway()
    finally:
        del os.environ[PORT], os.environ[SECRET]
    gateway.proc = process
    return gateway


def _environment(own: Mapping[str, str], told: Path) -> dict[str, str]:
    """Return the variables of the JVM, which hands them on to its workers.

    Without a home of Spark they import what is installed beside their Python. Text has the same
    hash in all of them, as with `spark-submit`.
    """
    kept = {name: value for name, value in own.items() if name != "SPARK_HOME"}
    return {**kept, "PYTHONHASHSEED": "0", _CONNECTION: str(told)}


def _ignore_interrupts() -> None:
    """Leave a person's Ctrl-C to this process, which ends the JVM."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)

"""The Java of engines and of servers, and its options."""

import os
from pathlib import Path
from typing import Final

SERIAL: Final = "-XX:+UseSerialGC"
CONCURRENT: Final = (
    "-XX:+UseG1GC",
    "-XX:MaxGCPauseMillis=50",
    "-XX:InitiatingHeapOccupancyPercent=30",
)
"""The collector of brokers, which finds old garbage beside their work.

What a broker counts for its metrics lives for minutes, and so becomes old: 100 KB a second. The
serial collector stops it for 240 ms then, every 20 minutes; this one for 10 to 35 ms.
"""
FRESH_DNS: Final = ("-Dsun.net.inetaddr.ttl=1", "-Dsun.net.inetaddr.negative.ttl=1")
"""Pods come back with other addresses: Java must not remember the old ones for 30 s.

An engine that does cannot commit for as long when the broker that leads was made anew.
"""
LARGE_PAGES: Final = "-XX:+UseTransparentHugePages"
"""A heap of large pages is given back to the kernel in a tenth of the time.

A process that dies keeps its connections until its memory is given back, and whoever takes over
waits for their end: 40 ms for 600 MiB of small pages, 5 ms for large ones. Where the kernel has
none, this changes nothing.
"""
LATE_COMPILER: Final = (
    "-XX:Tier4InvocationThreshold=50000",
    "-XX:Tier4MinInvocationThreshold=6000",
    "-XX:Tier4CompileThreshold=150000",
    "-XX:Tier4BackEdgeThreshold=400000",
)
"""The better compiler works on what is ten times as hot as Java wants it.

Else it takes a third of what a start costs, at the very moment at which all wait for it.
"""


def java_program() -> str:
    """Return the `java` to start: of $JAVA_HOME, else the first one on the PATH."""
    home = os.environ.get("JAVA_HOME")
    own = Path(home) / "bin" / "java" if home else None
    return str(own) if own and own.exists() else "java"


def class_archive(archive: Path) -> tuple[str, ...]:
    """Return the options for an archive of classes that is mapped where it was made for.

    Java maps it elsewhere by default, at random. Then it corrects all pointers in it, which makes
    private memory of most of its pages: 120 MiB of small ones for each engine, which a start has to
    make, and which the kernel has to take back before the connections of a dead JVM end.
    """
    return (
        f"-XX:SharedArchiveFile={archive}",
        "-Xshare:auto",
        "-Xlog:cds=off",
        "-XX:+UnlockDiagnosticVMOptions",
        "-XX:ArchiveRelocationMode=0",
    )

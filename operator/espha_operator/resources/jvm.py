"""Options of the servers' Java virtual machines."""

import re
from collections.abc import Sequence

from espha.jvm import FRESH_DNS
from espha_operator.api.quantities import MEBIBYTE, Resources, Usual, amount
from espha_operator.resources.meta import Object

# The rest is for the JVM itself, and for the node's cache of the files that a server has open.
_SHARE, _MOST_MIB = 0.3, 6144
# Above it, a full collection by one thread would last longer than others wait for a server.
_LARGE_MIB = 1024
_FOR_LARGE_HEAPS = "-XX:+UseG1GC -XX:MaxGCPauseMillis=20"
_COLLECTOR = re.compile(r"-XX:\+Use\w*GC")


def heap_mib(
    given: int | str | None, resources: Resources, usual: Usual, share: float, most: int
) -> int:
    """Return the heap of a JVM, MiB.

    Args:
        given: what the user says.
        resources: the container's.
        usual: what they are where the user says nothing.
        share: part of the memory's limit that the heap gets then.
        most: what it is then at most, MiB.
    """
    if given is not None:
        return int(amount(given)) // MEBIBYTE
    return min(int(resources.memory_limit(usual) * share) // MEBIBYTE, most)


def server_environment(
    prefix: str, given: int | str | None, resources: Resources, usual: Usual, options: Sequence[str]
) -> list[Object]:
    """Return the variables with the options of a server's JVM.

    Args:
        prefix: what their names begin with.
        given: heap that the user wants.
        resources: the container's.
        usual: what they are where the user says nothing.
        options: further options that the user gives.
    """
    heap = heap_mib(given, resources, usual, _SHARE, _MOST_MIB)
    further = list(options)
    if heap >= _LARGE_MIB and not any(_COLLECTOR.match(one) for one in further):
        further.append(_FOR_LARGE_HEAPS)
    values = {f"{prefix}_HEAP_OPTS": f"-Xms{heap}m -Xmx{heap}m {' '.join(FRESH_DNS)}"}
    if further:
        values[f"{prefix}_JVM_OPTS"] = " ".join(further)
    return [{"name": name, "value": value} for name, value in values.items()]

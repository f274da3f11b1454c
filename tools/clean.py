"""Delete the namespaces of the demo, and of tests that were killed, with all that is in them.

The cluster and the operator stay. A deployment that nobody ends takes the processor time that the
next tests need.
"""

from collections.abc import Sequence

from tools.offline_cluster import clients
from tools.offline_cluster.say import line, program, step

DEMO, TEST = "espha.dev/demo", "espha.dev/test"


def marked() -> list[str]:
    """Return every namespace that a demo or a test has marked as its own, as namespace/NAME."""
    return [
        name
        for label in (DEMO, TEST)
        for name in clients.kubectl("get", "namespace", "-l", label, "-o", "name").split()
    ]


def delete(names: Sequence[str]) -> None:
    """Delete the namespaces, and wait until they are gone.

    One of them may go by itself meanwhile: a cluster that was stopped while it deleted a
    namespace goes on with that when it starts again.
    """
    with step(f"deleting {', '.join(names)}"):
        clients.kubectl("delete", *names, "--ignore-not-found", "--timeout=5m", timeout=320)


def main() -> None:
    """Delete what demos and tests have left."""
    if names := marked():
        delete(names)
    else:
        line("there is no demo to delete")


if __name__ == "__main__":
    program(main)

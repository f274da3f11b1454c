"""Delete the namespaces of the demo, and of tests that were killed, with all that is in them.

The cluster and the operator stay. A deployment that nobody ends takes the processor time that the
next tests need.
"""

from tools.offline_cluster import clients
from tools.offline_cluster.say import line, program, step

DEMO, TEST = "espha.dev/demo", "espha.dev/test"


def main() -> None:
    """Delete every namespace that a demo or a test has marked as its own, and no other."""
    names = [
        name
        for label in (DEMO, TEST)
        for name in clients.kubectl("get", "namespace", "-l", label, "-o", "name").split()
    ]
    for name in names:
        with step(f"deleting {name}"):
            clients.kubectl("delete", name, "--timeout=5m", timeout=320)
    if not names:
        line("there is no demo to delete")


if __name__ == "__main__":
    program(main)

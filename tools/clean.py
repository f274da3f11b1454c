"""Delete the demo's namespaces with all that is in them; the cluster and the operator stay."""

from tools.offline_cluster import clients
from tools.offline_cluster.say import line, program, step

LABEL = "espha.dev/demo"


def main() -> None:
    """Delete every namespace that a demo has marked as its own, and no other."""
    names = clients.kubectl("get", "namespace", "-l", LABEL, "-o", "name").split()
    for name in names:
        with step(f"deleting the demo in {name.removeprefix('namespace/')}"):
            clients.kubectl("delete", name, "--timeout=3m")
    if not names:
        line("there is no demo to delete")


if __name__ == "__main__":
    program(main)

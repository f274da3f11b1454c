"""Deletes the demo's namespaces with all that is in them; the cluster and the operator stay."""

from dev import tools
from dev.say import line, program, step

LABEL = "espha.dev/demo"


def main() -> None:
    """Deletes every namespace that a demo has marked as its own, and no other."""
    names = tools.kubectl("get", "namespace", "-l", LABEL, "-o", "name").split()
    for name in names:
        namespace = name.removeprefix("namespace/")
        with step(f"deleting the demo in {namespace}"):
            # first what the operator takes part in: a namespace can hang on its finalizer
            tools.kubectl("-n", namespace, "delete", "espha", "--all", "--timeout=3m")
            tools.kubectl("delete", name, "--timeout=3m")
    if not names:
        line("there is no demo to delete")


if __name__ == "__main__":
    program(main)

"""The one entry: `python -m tools.offline_cluster COMMAND`."""

import os
import shlex
import sys

from tools.offline_cluster import clients, cluster
from tools.offline_cluster.say import Failure, program

USAGE = """usage: python -m tools.offline_cluster COMMAND
  up                                     bring the cluster up, or make sure that it is up
  stop                                   stop it, with all that it runs; `up` starts it again
  delete                                 delete it, and stop Docker if it was started by `up`
  env                                    print KUBECONFIG and PATH for a shell's `eval`
  kubectl | helm | kind [ARGUMENT …]     run that program against the cluster"""


def main() -> None:
    """Do what the command line says.

    Raises:
        Failure: it says nothing that is known.
    """
    name, *arguments = sys.argv[1:] or [""]
    if name in clients.PROGRAMS:
        _become(name, arguments)
        return
    actions = {
        "up": cluster.up,
        "stop": cluster.stop,
        "delete": cluster.delete,
        "env": _print_environment,
    }
    if name not in actions or arguments:
        raise Failure(USAGE)
    actions[name]()


def _print_environment() -> None:
    print(f"export KUBECONFIG={shlex.quote(str(clients.kubeconfig()))}")
    print(f'export PATH="{clients.binaries()}:$PATH"')


def _become(name: str, arguments: list[str]) -> None:
    own = clients.binaries() / name
    if not own.exists():
        raise Failure(f"{name} is not there yet; `make cluster` brings it")
    environment = {**os.environ, **clients.environment()}
    os.execve(own, [name, *arguments], environment)  # noqa: S606  (no shell is what is wanted)


if __name__ == "__main__":
    program(main)

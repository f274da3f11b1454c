"""kubectl, helm and the cluster's address, for the tests, the demo and people.

`python -m dev.tools kubectl get pods` runs a command against the local cluster;
`eval "$(python -m dev.tools env)"` gives a shell the same.
"""

import os
import shlex
import shutil
import sys
import time
from pathlib import Path

from dev import cache, command, golang
from dev.say import Failure, program

HELM = "v3.22.0"
CLUSTER = "espha"
NODE = f"{CLUSTER}-control-plane"
PATIENCE = 60
PASSING = (
    "connection reset by peer",
    "connection refused",
    "was refused - did you specify the right host or port",
    "TLS handshake timeout",
    "unexpected EOF",
    "etcdserver: leader changed",
    "etcdserver: request timed out",
)
"""What kubectl says when the API server is away for a moment."""
USAGE = "usage: python -m dev.tools env | kubectl ARGUMENT… | helm ARGUMENT… | kind ARGUMENT…"


def kubeconfig() -> Path:
    """Returns the path of the local cluster's kubeconfig; ~/.kube/config is never touched."""
    return cache.directory() / "kubeconfig"


def binaries() -> Path:
    """Returns the directory that holds kubectl, helm and kind once the cluster is up."""
    path = cache.directory() / "bin"
    path.mkdir(exist_ok=True)
    return path


def environment() -> dict[str, str]:
    """Returns the variables that point other programs at the cluster: KUBECONFIG and PATH."""
    path = f"{binaries()}{os.pathsep}{os.environ.get('PATH', os.defpath)}"
    return {"KUBECONFIG": str(kubeconfig()), "PATH": path}


def kubectl(*arguments: str | Path, stdin: str | None = None, timeout: float = 300) -> str:
    """Runs kubectl against the local cluster and returns its output.

    A connection that breaks is tried again for a minute: on a busy machine the API server may be
    away for a moment.

    Raises:
        Failure: it ended with an error, whose text is in the message.
    """
    own = binaries() / "kubectl"
    end = time.monotonic() + PATIENCE
    while True:
        try:
            return command.run(own, *arguments, env=environment(), stdin=stdin, timeout=timeout)
        except Failure as failure:
            if time.monotonic() > end or not any(sign in str(failure) for sign in PASSING):
                raise
            time.sleep(1)


def helm(*arguments: str | Path, stdin: str | None = None, timeout: float = 300) -> str:
    """Runs helm against the local cluster and returns its output.

    Raises:
        Failure: it ended with an error, whose text is in the message.
    """
    own = binaries() / "helm"
    return command.run(own, *arguments, env=environment(), stdin=stdin, timeout=timeout)


def place(name: str, target: Path) -> None:
    """Makes a program known under its name in `binaries`."""
    link = binaries() / name
    if link.is_symlink() and link.readlink() == target:
        return
    link.unlink(missing_ok=True)
    link.symlink_to(target)


def place_kubectl() -> None:
    """Takes kubectl out of the cluster's node: always there, always of the right version."""
    source = command.run("docker", "exec", NODE, "readlink", "-f", "/usr/bin/kubectl").strip()
    version = command.run("docker", "exec", NODE, "cat", "/kind/version").strip()
    key = cache.digest(source, version)

    def copy(path: Path) -> None:
        command.run("docker", "cp", f"{NODE}:{source}", path / "kubectl")

    place("kubectl", cache.once("kubectl", key, copy) / "kubectl")


def place_helm() -> None:
    """Takes the machine's own helm, or builds one."""
    elsewhere = [p for p in os.environ.get("PATH", "").split(os.pathsep) if p != str(binaries())]
    own = shutil.which("helm", path=os.pathsep.join(elsewhere))
    place("helm", Path(own) if own else golang.install("helm", "helm.sh/helm/v3/cmd/helm", HELM))


def main() -> None:
    """Prints the environment for a shell, or becomes the program that is named."""
    arguments = sys.argv[1:]
    if arguments == ["env"]:
        for name, value in {**environment(), "PATH": f"{binaries()}:$PATH"}.items():
            quoted = f'"{value}"' if name == "PATH" else shlex.quote(value)
            print(f"export {name}={quoted}")
        return
    if not arguments or arguments[0] not in ("kubectl", "helm", "kind"):
        raise Failure(USAGE)
    own = binaries() / arguments[0]
    if not own.exists():
        raise Failure(f"{arguments[0]} is not there yet; `make cluster` brings it")
    os.execve(own, arguments, {**os.environ, **environment()})  # noqa: S606  (no shell is what is wanted)


if __name__ == "__main__":
    program(main)

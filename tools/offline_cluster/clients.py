"""kubectl, helm and the cluster's address, for tests, the demo and people."""

import os
import shutil
import time
from pathlib import Path

from tools.offline_cluster import cache, command, golang
from tools.offline_cluster.say import Failure

HELM = "v3.22.0"
WORKERS = int(os.environ.get("ESPHA_WORKERS", "0"))
"""Nodes beside the control plane; with none, pods run there. Each number has its own cluster."""
CLUSTER = f"espha-{WORKERS}-workers" if WORKERS else "espha"
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
PROGRAMS = ("kubectl", "helm", "kind")


def kubeconfig() -> Path:
    """Return the path of the local cluster's kubeconfig; ~/.kube/config is never touched."""
    return cache.directory() / (f"kubeconfig-{CLUSTER}" if WORKERS else "kubeconfig")


def binaries() -> Path:
    """Return the directory that holds kubectl, helm and kind once the cluster is up."""
    path = cache.directory() / "bin"
    path.mkdir(exist_ok=True)
    return path


def environment() -> dict[str, str]:
    """Return the variables that point other programs at the cluster: KUBECONFIG and PATH."""
    path = f"{binaries()}{os.pathsep}{os.environ.get('PATH', os.defpath)}"
    return {"KUBECONFIG": str(kubeconfig()), "PATH": path}


def kubectl(*arguments: str | Path, stdin: str | None = None, timeout: float = 300) -> str:
    """Run kubectl against the local cluster and return its output.

    A connection that breaks is tried again for a minute: on a busy machine the API server may be
    away for a moment.

    Raises:
        Failure: it ended with an error, whose text is in the message.
    """
    program = binaries() / "kubectl"
    end = time.monotonic() + PATIENCE
    while True:
        try:
            return command.run(program, *arguments, env=environment(), stdin=stdin, timeout=timeout)
        except Failure as failure:
            if time.monotonic() > end or not any(sign in str(failure) for sign in PASSING):
                raise
            time.sleep(1)


def helm(*arguments: str | Path, stdin: str | None = None, timeout: float = 300) -> str:
    """Run helm against the local cluster and return its output.

    Raises:
        Failure: it ended with an error, whose text is in the message.
    """
    program = binaries() / "helm"
    return command.run(program, *arguments, env=environment(), stdin=stdin, timeout=timeout)


def place(name: str, target: Path) -> None:
    """Make a program known under its name in `binaries`."""
    link = binaries() / name
    if link.is_symlink() and link.readlink() == target:
        return
    link.unlink(missing_ok=True)
    link.symlink_to(target)


def place_kubectl() -> None:
    """Take kubectl out of the cluster's node: always there, always of the right version."""
    source = command.run("docker", "exec", NODE, "readlink", "-f", "/usr/bin/kubectl").strip()
    version = command.run("docker", "exec", NODE, "cat", "/kind/version").strip()
    key = cache.digest(source, version)

    def copy(path: Path) -> None:
        command.run("docker", "cp", f"{NODE}:{source}", path / "kubectl")

    place("kubectl", cache.once("kubectl", key, copy) / "kubectl")


def place_helm() -> None:
    """Take the machine's own helm, or build one."""
    place("helm", own("helm") or golang.install("helm", "helm.sh/helm/v3/cmd/helm", HELM))


def own(name: str) -> Path | None:
    """Return the machine's own program of that name, if there is one outside `binaries`."""
    elsewhere = [p for p in os.environ.get("PATH", "").split(os.pathsep) if p != str(binaries())]
    found = shutil.which(name, path=os.pathsep.join(elsewhere))
    return Path(found) if found else None

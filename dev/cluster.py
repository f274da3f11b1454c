"""The local Kubernetes cluster: `python -m dev.cluster [up | delete]`."""

import sys
import time

from dev import cache, command, docker, node, tools
from dev.say import Failure, line, program, step

READY_SECONDS = 180


def up() -> None:
    """Returns once the cluster answers; makes it, or starts it again, where it does not.

    Raises:
        Failure: it cannot be brought up, with the reason.
    """
    docker.ensure()
    with cache.lock("cluster"):
        if not _usable():
            _create()
        tools.place_kubectl()
        tools.place("kind", node.kind())
        tools.place_helm()
    line(f'cluster "{tools.CLUSTER}" is ready; kubeconfig: {tools.kubeconfig()}')


def delete() -> None:
    """Deletes the cluster, and stops Docker if it was we who started it."""
    with cache.lock("cluster"):
        if command.works("docker", "info"):
            with step("deleting the cluster"):
                command.run("docker", "rm", "-f", "-v", tools.NODE)
        docker.stop()
        tools.kubeconfig().unlink(missing_ok=True)


def configuration(node_image: str) -> str:
    """Returns kind's configuration for a node image; ours brings its own CNI."""
    network = "networking:\n  disableDefaultCNI: true\n" if node.is_built(node_image) else ""
    return (
        "kind: Cluster\napiVersion: kind.x-k8s.io/v1alpha4\n"
        f"{network}nodes:\n  - role: control-plane\n"
    )


def _usable() -> bool:
    """Says whether there is a cluster of the right make, after starting it if it was stopped."""
    template = "{{.State.Running}} {{.Config.Image}}"
    found = command.answer("docker", "inspect", "-f", template, tools.NODE)
    if found is None:
        return False
    running, image = found.split()
    if image.partition("@")[0] not in (node.PUBLISHED, node.built_name()):
        # what runs in it may matter to somebody; only a cluster that does not work is replaced
        line("the cluster is of an older make; `make cluster-clean cluster` makes it anew")
    if running != "true":
        line("starting the cluster's node again")
        command.run("docker", "start", tools.NODE)
    if not tools.kubeconfig().exists():
        _export_kubeconfig()
    return _ready()


def _ready() -> bool:
    """Waits until the API server and the node are ready; the node's own kubectl asks."""
    ask = ("docker", "exec", tools.NODE, "kubectl", "--kubeconfig=/etc/kubernetes/admin.conf")
    end = time.monotonic() + READY_SECONDS
    state = ("get", "node", tools.NODE, "-o", _READY_CONDITION)
    while (command.answer(*ask, *state, timeout=10) or "").strip() != "True":
        if time.monotonic() > end:
            line(f"the cluster is not ready after {READY_SECONDS} s: it is made anew")
            return False
        time.sleep(0.5)
    # without names nothing in the cluster finds anything, and after a restart they come last
    names = ("-n", "kube-system", "rollout", "status", "deployment/coredns")
    return command.works(*ask, *names, "--timeout=120s", timeout=130)


_READY_CONDITION = 'jsonpath={.status.conditions[?(@.type=="Ready")].status}'


def _create() -> None:
    image = node.image()
    kind = node.kind()
    with step(f'making the cluster "{tools.CLUSTER}"'):
        command.answer("docker", "rm", "-f", "-v", tools.NODE)
        with cache.scratch() as path:
            file = path / "kind.yaml"
            file.write_text(configuration(image))
            command.run(
                kind, "create", "cluster", "--name", tools.CLUSTER, "--image", image,
                "--config", file, "--kubeconfig", tools.kubeconfig(), "--wait", "180s",
            )  # fmt: skip
        if not _ready():
            raise Failure(f"the new cluster is not ready; see `docker logs {tools.NODE}`")


def _export_kubeconfig() -> None:
    options = ("--name", tools.CLUSTER, "--kubeconfig", tools.kubeconfig())
    command.run(node.kind(), "export", "kubeconfig", *options)


def main() -> None:
    """Does what the command line says."""
    actions = {"up": up, "delete": delete}
    name = sys.argv[1] if len(sys.argv) > 1 else "up"
    if name not in actions:
        raise Failure("usage: python -m dev.cluster [up | delete]")
    actions[name]()


if __name__ == "__main__":
    program(main)

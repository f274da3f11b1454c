"""The local Kubernetes cluster: up, and away again."""

from tools.offline_cluster import cache, clients, command, docker, network, node, wait
from tools.offline_cluster.say import Failure, line, step

READY_SECONDS = 180


def up() -> None:
    """Return once the cluster answers; make it, or start it again, where it does not.

    Raises:
        Failure: it cannot be brought up, with the reason.
    """
    docker.ensure()
    with cache.lock("cluster"):
        _stop_others()
        if not _usable():
            _create()
        _start_only_by_us(nodes(clients.CLUSTER))
        clients.place_kubectl()
        clients.place("kind", node.kind())
        clients.place_helm()
    line(f'cluster "{clients.CLUSTER}" is ready; kubeconfig: {clients.kubeconfig()}')


def stop() -> None:
    """Stop our clusters, of any size, where they run; `up` starts one again with all it held."""
    with cache.lock("cluster"):
        _stop(nodes(state="running"))


def delete() -> None:
    """Delete our clusters, and stops Docker if it was we who started it."""
    with cache.lock("cluster"):
        if command.works("docker", "info"):
            with step("deleting the cluster"):
                command.run("docker", "rm", "-f", "-v", *sorted({clients.NODE, *nodes()}))
        docker.stop()
        clients.kubeconfig().unlink(missing_ok=True)


def configuration(node_image: str) -> str:
    """Return kind's configuration for a node image; ours brings its own CNI."""
    own_network = "networking:\n  disableDefaultCNI: true\n" if node.is_built(node_image) else ""
    workers = [
        f"  - role: worker\n    labels: {{{_ZONE}: zone-{number}}}\n"
        for number in range(clients.WORKERS)
    ]
    return (
        "kind: Cluster\napiVersion: kind.x-k8s.io/v1alpha4\n"
        f"{own_network}nodes:\n  - role: control-plane\n{''.join(workers)}"
    )


_ZONE = "topology.kubernetes.io/zone"
_BELONGS = "io.x-k8s.kind.cluster"


def nodes(cluster: str = "", state: str = "") -> list[str]:
    """Return the names of nodes of our clusters, or of one of them; in one state, or in any."""
    options = [f"--filter=status={state}"] if state else []
    form = f'{{{{.Label "{_BELONGS}"}}}} {{{{.Names}}}}'
    listed = command.answer("docker", "ps", "-a", "--format", form, *options) or ""
    pairs = [line.split() for line in listed.splitlines() if len(line.split()) == 2]
    ours = ((of, name) for of, name in pairs if of == "espha" or of.startswith("espha-"))
    return [name for of, name in ours if cluster in ("", of)]


def _stop_others() -> None:
    """Stop our clusters of another size: two of them would not leave each other enough."""
    _stop([name for name in nodes(state="running") if name not in nodes(clients.CLUSTER)])


def _stop(names: list[str]) -> None:
    if names:
        with step(f"stopping {', '.join(names)}"):
            command.run("docker", "stop", *names)


def _start_only_by_us(names: list[str]) -> None:
    """Keep dockerd from starting nodes together with itself, clusters of every size at once.

    A node that is stopped while its pods start may leave one of their cgroups frozen; what is
    frozen cannot be killed, and the node could then not be stopped at all.
    """
    command.run("docker", "update", "--restart=no", *names)


def _usable() -> bool:
    """Say whether there is a cluster of the right make, after starting it if it was stopped."""
    template = "{{.State.Running}} {{.Config.Image}}"
    found = command.answer("docker", "inspect", "-f", template, clients.NODE)
    if found is None:
        return False
    running, image = found.split()
    if image.partition("@")[0] not in (node.PUBLISHED, node.built_name()):
        # what runs in it may matter to somebody; only a cluster that does not work is replaced
        line("the cluster is of an older make; `make cluster-clean cluster` makes it anew")
    if running != "true":
        line("starting the cluster's node again")
        command.run("docker", "start", *nodes(clients.CLUSTER))
    if not clients.kubeconfig().exists():
        _export_kubeconfig()
    _join(image, fresh=False)  # whoever started them, routes do not last
    return _ready()


def _join(image: str, *, fresh: bool) -> None:
    network.close(nodes(clients.CLUSTER))
    if clients.WORKERS and node.is_built(image):
        network.connect(fresh)


def _ready() -> bool:
    """Wait until the API server and the node are ready; the node's own kubectl asks."""
    ask = ("docker", "exec", clients.NODE, "kubectl", "--kubeconfig=/etc/kubernetes/admin.conf")
    state = (*ask, "get", "node", clients.NODE, "-o", _READY_CONDITION)

    def ready() -> bool:
        return (command.answer(*state, timeout=10) or "").strip() == "True"

    if not wait.until(ready, READY_SECONDS, pause=0.5):
        line(f"the cluster is not ready after {READY_SECONDS} s: it is made anew")
        return False
    # without names nothing in the cluster finds anything, and after a restart they come last
    names = ("-n", "kube-system", "rollout", "status", "deployment/coredns")
    return command.works(*ask, *names, "--timeout=120s", timeout=130)


_READY_CONDITION = 'jsonpath={.status.conditions[?(@.type=="Ready")].status}'


def _create() -> None:
    image = node.image()
    kind = node.kind()
    with step(f'making the cluster "{clients.CLUSTER}"'):
        command.answer("docker", "rm", "-f", "-v", *sorted({clients.NODE, *nodes(clients.CLUSTER)}))
        with cache.scratch() as path:
            file = path / "kind.yaml"
            file.write_text(configuration(image))
            command.run(
                kind, "create", "cluster", "--name", clients.CLUSTER, "--image", image,
                "--config", file, "--kubeconfig", clients.kubeconfig(), "--wait", "180s",
            )  # fmt: skip
        _join(image, fresh=True)
        if not _ready():
            raise Failure(f"the new cluster is not ready; see `docker logs {clients.NODE}`")


def _export_kubeconfig() -> None:
    options = ("--name", clients.CLUSTER, "--kubeconfig", clients.kubeconfig())
    command.run(node.kind(), "export", "kubeconfig", *options)

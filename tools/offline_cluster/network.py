"""The pods' network: closed in every cluster, and connected where several nodes were built here.

Such a node brings a CNI that knows one range only. Each node gets its own range instead, the one
that Kubernetes has given it, and a route to each of the others.
"""

import json
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from tools.offline_cluster import clients, command, wait
from tools.offline_cluster.say import Failure

CONFIGURATION = "/etc/cni/net.d/10-espha.conflist"
RANGES_SECONDS = 60
PODS, SERVICES = "10.244.0.0/16", "10.96.0.0/16"
"""The ranges of all pods and of all Services, as kind gives them."""
_NETWORK = "kind"
_ASK = ("docker", "exec", clients.NODE, "kubectl", "--kubeconfig=/etc/kubernetes/admin.conf")


class Place(NamedTuple):
    """Where a node is."""

    address: str
    """Its own."""
    pods: str
    """The range of its pods."""


def close(names: Iterable[str]) -> None:
    """Have nobody answer for pods and Services that are not there; again after each start.

    A node has a route to each of its pods. What is sent to one that is gone would leave the
    cluster, and so would what is sent to a Service that kube-proxy does not know yet. Out there
    something may take the connection, such as a proxy. A broker of Kafka that hears "HTTP" from
    another broker takes it for the size of an answer, 1.2 GB, and ends for lack of memory.

    Args:
        names: the nodes.
    """
    to_services = f"FORWARD -d {SERVICES} -j DROP"
    for name in names:
        inside = ("docker", "exec", name)
        command.run(*inside, "ip", "route", "replace", "blackhole", PODS)
        # Behind kube-proxy's own rules, which turn Services that it knows into pods.
        if not command.works(*inside, "iptables", "-w", "-C", *to_services.split()):
            command.run(*inside, "iptables", "-w", "-A", *to_services.split())


def connect(fresh: bool) -> None:
    """Let the pods of all nodes reach each other; again after each start of the nodes.

    Args:
        fresh: the cluster has just been made: pods that have an address of the wrong range are
            made anew.

    Raises:
        Failure: a node has no range.
    """
    found: dict[str, Place] = {}

    def ranged() -> bool:
        found.clear()
        found.update(places(command.answer(*_ASK, "get", "nodes", "-o", "json") or '{"items": []}'))
        return len(found) == clients.WORKERS + 1

    if not wait.until(ranged, RANGES_SECONDS, pause=0.5):
        raise Failure(f"nodes have no range for pods; there are {', '.join(found) or 'none'}")
    # Nodes may have got other addresses when they were started, which Kubernetes learns later.
    now = {name: place._replace(address=_address(name)) for name, place in found.items()}
    for name in now:
        _configure(name, now)
    if fresh:
        for namespace in ("kube-system", "local-path-storage"):
            named = ("-n", namespace, "delete", "pods", "--wait=false")
            own_network = "--field-selector=spec.hostNetwork=false"
            command.run(*_ASK, *named, own_network)


def places(listed: str) -> dict[str, Place]:
    """Return where the nodes are that `kubectl get nodes -o json` lists, if they have a range."""
    return {
        one["metadata"]["name"]: Place(
            next(a["address"] for a in one["status"]["addresses"] if a["type"] == "InternalIP"),
            one["spec"]["podCIDR"],
        )
        for one in json.loads(listed)["items"]
        if "podCIDR" in one["spec"]
    }


def configuration(given: str, pods: str) -> str:
    """Return a node's CNI configuration with the range of its pods."""
    changed = json.loads(given)
    changed["plugins"][0]["ipam"]["ranges"] = [[{"subnet": pods}]]
    return json.dumps(changed, indent=2)


def routes(name: str, found: Mapping[str, Place]) -> list[str]:
    """Return the routes from one node to the pods of the others, as arguments of `ip`."""
    return [
        f"route replace {place.pods} via {place.address}"
        for other, place in found.items()
        if other != name
    ]


def _address(name: str) -> str:
    template = f"{{{{.NetworkSettings.Networks.{_NETWORK}.IPAddress}}}}"
    return command.run("docker", "inspect", "-f", template, name).strip()


def _configure(name: str, found: Mapping[str, Place]) -> None:
    inside = ("docker", "exec", "-i", name)
    given = command.run(*inside, "cat", CONFIGURATION)
    text = configuration(given, found[name].pods)
    # In one step: containerd reads it as soon as it changes.
    write = f"cat > {CONFIGURATION}.new && mv {CONFIGURATION}.new {CONFIGURATION}"
    command.run(*inside, "sh", "-c", write, stdin=text)
    for route in routes(name, found):
        command.run(*inside, "ip", *route.split())

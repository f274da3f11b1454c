"""What is read from the machine and from other programs' answers."""

import json
from pathlib import Path

import pytest

from tools import images
from tools.offline_cluster import (
    clients,
    cluster,
    command,
    docker,
    golang,
    network,
    node,
    runc_wrapper,
)
from tools.offline_cluster.say import Failure


@pytest.mark.parametrize(
    ("version", "enough"),
    [
        ("go version go1.19.8 linux/amd64", False),
        ("go version go1.24 linux/amd64", True),
        ("go version go1.26.8 linux/amd64", True),
        ("", False),
    ],
    ids=["debian 12", "oldest", "newer", "no answer"],
)
def test_old_go_is_not_used(version: str, enough: bool) -> None:
    assert golang.is_new_enough(version) is enough


@pytest.mark.parametrize(
    ("bounding", "lacks"),
    [("000001ffffffffff", False), ("000001fffeffffff", True)],
    ids=["all capabilities", "without bit 24"],
)
def test_bounding_set(bounding: str, lacks: bool) -> None:
    status = f"Name:\tx\nCapEff:\t000001ffffffffff\nCapBnd:\t{bounding}\nSeccomp:\t0\n"
    assert docker.lacks_sys_resource(status) is lacks


@pytest.mark.parametrize(
    ("arguments", "path"),
    [
        (["--root", "/r", "create", "--bundle", "/b", "id"], "/b/config.json"),
        (["create", "--bundle=/b", "id"], "/b/config.json"),
        (["exec", "--process", "/p.json", "id"], "/p.json"),
        (["state", "id"], None),
    ],
    ids=["create", "create with equals sign", "exec", "state"],
)
def test_wrapper_finds_the_description(arguments: list[str], path: str | None) -> None:
    found = runc_wrapper.described(arguments)
    assert (found and str(found)) == path


def test_wrapper_takes_one_capability_and_the_limits() -> None:
    process = {
        "args": ["sh"],
        "rlimits": [{"type": "RLIMIT_NOFILE"}],
        "capabilities": {"bounding": ["CAP_CHOWN", "CAP_SYS_RESOURCE"], "ambient": []},
    }
    assert runc_wrapper.without_capability(process) == {
        "args": ["sh"],
        "capabilities": {"bounding": ["CAP_CHOWN"], "ambient": []},
    }


def test_wrapper_rewrites_a_bundle(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The program changes config.json, and then becomes runc with the same arguments."""
    config = tmp_path / "config.json"
    process = {"rlimits": [], "capabilities": {"effective": ["CAP_SYS_RESOURCE"]}}
    config.write_text(json.dumps({"ociVersion": "1", "process": process}))
    arguments = ["create", "--bundle", str(tmp_path), "id"]
    became: list[list[str]] = []
    monkeypatch.setattr("sys.argv", ["wrapper", *arguments])
    monkeypatch.setattr("os.execvp", lambda program, words: became.append([program, *words]))
    runc_wrapper.main()
    assert json.loads(config.read_text()) == {
        "ociVersion": "1",
        "process": {"capabilities": {"effective": []}},
    }
    assert became == [["runc", "runc", *arguments]]


def test_images_are_sorted_by_component() -> None:
    names = node.sorted_names(
        ["r/kube-apiserver:v1", "r/kube-proxy:v1", "r/coredns/coredns:v2", "r/pause:3", "r/etcd:4"]
    )
    assert names == {
        "kube": ["r/kube-apiserver:v1", "r/kube-proxy:v1"],
        "etcd": ["r/etcd:4"],
        "coredns": ["r/coredns/coredns:v2"],
        "pause": ["r/pause:3"],
    }


def test_a_missing_component_is_named() -> None:
    with pytest.raises(Failure, match="no image for etcd, pause"):
        node.sorted_names(["r/kube-proxy:v1", "r/coredns:v2"])


def test_only_our_node_image_brings_its_own_network() -> None:
    assert "disableDefaultCNI: true" in cluster.configuration(node.built_name())
    assert "disableDefaultCNI" not in cluster.configuration(node.PUBLISHED)


NODES = json.dumps(
    {
        "items": [
            {
                "metadata": {"name": name},
                "spec": {"podCIDR": pods} if pods else {},
                "status": {"addresses": [{"type": "InternalIP", "address": address}]},
            }
            for name, pods, address in [
                ("one", "10.244.0.0/24", "172.18.0.2"),
                ("two", "10.244.3.0/24", "172.18.0.3"),
                ("new", "", "172.18.0.4"),
            ]
        ]
    }
)


def test_each_node_has_a_range_and_routes_to_the_others() -> None:
    """A node that has no range yet is not there yet."""
    found = network.places(NODES)
    assert list(found) == ["one", "two"]
    assert network.routes("one", found) == ["route replace 10.244.3.0/24 via 172.18.0.3"]
    given = (node.RECIPE / "etc" / "cni" / "net.d" / "10-espha.conflist").read_text()
    changed = json.loads(network.configuration(given, "10.244.3.0/24"))
    assert changed["plugins"][0]["ipam"]["ranges"] == [[{"subnet": "10.244.3.0/24"}]]
    assert changed["plugins"][1:] == json.loads(given)["plugins"][1:]


def test_workers_are_part_of_the_configuration(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "worker" not in cluster.configuration(node.PUBLISHED)
    monkeypatch.setattr(clients, "WORKERS", 3)
    assert cluster.configuration(node.PUBLISHED).count("role: worker") == 3


def test_a_failing_program_is_a_sentence_with_its_last_words() -> None:
    with pytest.raises(Failure, match=r"(?s)ended with code 3.*out of milk"):
        command.run("sh", "-c", "echo out of milk >&2; exit 3")


def test_a_missing_program_is_a_sentence() -> None:
    with pytest.raises(Failure, match="the program no-such-program is missing"):
        command.run("no-such-program")


def test_a_program_that_hangs_is_ended() -> None:
    with pytest.raises(Failure, match="did not end within 0 s"):
        command.run("sleep", "60", timeout=0.1)


def test_an_unknown_image_is_refused() -> None:
    with pytest.raises(Failure, match="no image named kafak; there are engine, operator"):
        images.build("kafak")

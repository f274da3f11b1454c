"""The images of the project, built and loaded into the cluster: `python -m tools.images [NAME …]`.

Wheels and jars are resolved on the host, which knows its registries and certificates, and
copied in; inside a build only Debian's packages are fetched.
"""

import re
import shutil
import sys
import tomllib
from pathlib import Path
from typing import Any

from espha.local.jars import PROFILES
from tools import ROOT, jars
from tools.offline_cluster import base, cache, clients, cluster, command, docker, golang, node
from tools.offline_cluster.say import Failure, line, program, step

IMAGES = ROOT / "images"
SERVERS = ("kafka", "zookeeper")
APPLICATIONS = {"engine": ["engine/espha"], "operator": ["engine/espha", "operator/espha_operator"]}
# Numerics run models; the operator only reads them, and they would double its image.
LEFT_OUT = {"engine": [], "operator": ["numpy", "pillow", "scipy"]}
NAMES = (*APPLICATIONS, *SERVERS)
PYTHON = "3.11"  # Debian 12's, in the images; the host may have a newer one
GLIBC = "manylinux_2_28"
JRE_PACKAGE = "openjdk-17-jre-headless"
LOADED = "/kind/espha-images"
_DIGEST = re.compile(r"sha256:|import-[^/]*@sha256:")


def version() -> str:
    """Return the project's version, which is the images' tag."""
    return str(_project()["version"])


def tag(name: str) -> str:
    """Return the full name of one of the project's images."""
    return f"espha/{name}:{version()}"


def build(name: str) -> str:
    """Build one image, unless one of the same ingredients is there, and return its tag."""
    if name in SERVERS:
        _build_server(name)
    elif name in APPLICATIONS:
        _build_application(name, _dependencies(name))
        docker.remove_older(f"espha/{name}-dependencies")
    else:
        raise Failure(f"no image named {name}; there are {', '.join(NAMES)}")
    return tag(name)


def load(names: list[str]) -> None:
    """Load images into the cluster's node, without those it has already."""
    wanted = {name: docker.image_id(tag(name)) for name in names}
    missing = [name for name, image in wanted.items() if _loaded(name) != image]
    if not missing:
        return
    with step(f"loading {', '.join(missing)} into the cluster"):
        tags = [tag(name) for name in missing]
        command.run(node.kind(), "load", "docker-image", "--name", clients.CLUSTER, *tags)
    for name in missing:
        write = f'mkdir -p {LOADED} && cat > "{LOADED}/$0"'
        inside = ("docker", "exec", "-i", clients.NODE, "sh", "-c", write, name)
        command.run(*inside, stdin=wanted[name])
    for one in cluster.nodes(clients.CLUSTER):
        _forget_replaced(one)


def replaced(listed: str) -> list[str]:
    """Return the names by which a node keeps images that have no tag any more.

    An image that is loaded under the tag of another one takes only the tag. The other one stays
    under its digests.

    Args:
        listed: what `ctr images ls` prints.
    """
    rows = [(row.split()[0], row.split()[2]) for row in listed.splitlines()[1:]]
    tagged = {target for ref, target in rows if not _DIGEST.match(ref)}
    return [ref for ref, target in rows if _DIGEST.match(ref) and target not in tagged]


def _forget_replaced(node_name: str) -> None:
    ask = ("docker", "exec", node_name, "ctr", "-n", "k8s.io", "images")
    if refs := replaced(command.answer(*ask, "ls") or ""):
        command.answer(*ask, "rm", *refs)  # what stays costs room on the disk only


def _loaded(name: str) -> str | None:
    """Return the id of the image that was loaded into this node under a name, if one was."""
    return command.answer("docker", "exec", clients.NODE, "cat", f"{LOADED}/{name}")


def _build_server(name: str) -> None:
    folder, libraries = IMAGES / name, jars.directory(name)
    below = base.image()
    label = cache.digest(folder, libraries / jars.STAMP, JRE_PACKAGE, docker.image_id(below))
    if docker.has(tag(name), label):
        return
    with step(f"building the image {tag(name)}"), cache.scratch() as path:
        shutil.copytree(folder, path, dirs_exist_ok=True)
        shutil.copytree(libraries, path / "jars")
        arguments = {"BASE_IMAGE": below, "JRE_PACKAGE": JRE_PACKAGE}
        docker.build(tag(name), path, arguments=arguments, label=label)


def _dependencies(name: str) -> str:
    """Build the image below an application, of wheels and jars, and return its tag."""
    folder, below = IMAGES / "python", base.image()
    libraries = jars.directory(name) if name in PROFILES else None
    arguments = {"BASE_IMAGE": below, "JRE_PACKAGE": JRE_PACKAGE if libraries else ""}
    stamps = [libraries / jars.STAMP] if libraries else []
    wheels = (repr(_wanted(name)), ROOT / "requirements.lock", PYTHON)
    label = cache.digest(folder, *wheels, *stamps, *arguments.values(), docker.image_id(below))
    result = f"espha/{name}-dependencies:{label}"
    if docker.has(result, label):
        return result
    with step(f"building what the image {name} stands on"), cache.scratch() as path:
        shutil.copytree(folder, path, dirs_exist_ok=True)
        _install_wheels(name, path / "packages")
        if libraries:
            shutil.copytree(libraries, path / "jars")
        (path / "jars").mkdir(exist_ok=True)
        docker.build(result, path, arguments=arguments, label=label)
    return result


def _wanted(name: str) -> list[str]:
    """Return what the wheels of an application follow from, beside the lock file."""
    project = _project()
    wanted = [*project["dependencies"], *project["optional-dependencies"][name]]
    return [*wanted, *(f"without {package}" for package in LEFT_OUT[name])]


def _install_wheels(name: str, target: Path) -> None:
    """Install the locked packages of one extra, for the image's Python, into a directory."""
    uv = Path(sys.prefix) / "bin" / "uv"
    subset = target.parent / "requirements.txt"
    # a company's own certificates are in the system's store
    options = ("--python-version", PYTHON, "--quiet", "--system-certs")
    left_out = [word for package in LEFT_OUT[name] for word in ("--no-emit-package", package)]
    command.run(
        uv, "pip", "compile", ROOT / "pyproject.toml", "--extra", name, *options, *left_out,
        "--constraint", ROOT / "requirements.lock", "--generate-hashes",
        "--no-emit-index-url", "--no-header", "--output-file", subset,
    )  # fmt: skip
    machine = {"amd64": "x86_64", "arm64": "aarch64"}[golang.architecture()]
    command.run(
        uv, "pip", "install", "--target", target, "--requirement", subset, *options,
        "--python-platform", f"{machine}-{GLIBC}", "--require-hashes", "--no-deps",
        "--python", sys.executable,
    )  # fmt: skip


def _build_application(name: str, dependencies: str) -> None:
    folder = IMAGES / name
    sources = [ROOT / source for source in APPLICATIONS[name]]
    label = cache.digest(folder, *sources, dependencies, version())
    if docker.has(tag(name), label):
        return
    with step(f"building the image {tag(name)}"), cache.scratch() as path:
        shutil.copytree(folder, path, dirs_exist_ok=True)
        for source in sources:
            ignored = shutil.ignore_patterns("__pycache__")
            shutil.copytree(source, path / "packages" / source.name, ignore=ignored)
        _write_metadata(path)
        docker.build(tag(name), path, arguments={"DEPENDENCIES": dependencies}, label=label)


def _write_metadata(path: Path) -> None:
    """Write what an installer would: the package's name and version, and its command."""
    information = path / "packages" / f"espha-{version()}.dist-info"
    information.mkdir()
    text = f"Metadata-Version: 2.1\nName: espha\nVersion: {version()}\n"
    (information / "METADATA").write_text(text)
    (path / "bin").mkdir()
    module, _, function = _project()["scripts"]["espha"].partition(":")
    command_text = (
        f"#!/usr/bin/python3\nimport sys\n\nfrom {module} import {function}\n\n"
        f"sys.exit({function}())\n"
    )
    (path / "bin" / "espha").write_text(command_text)


def _project() -> dict[str, Any]:
    content = tomllib.loads((ROOT / "pyproject.toml").read_text())
    project: dict[str, Any] = content["project"]
    return project


def main() -> None:
    """Build the images that are named, or all; loads them if the cluster is there."""
    names = sys.argv[1:] or list(NAMES)
    docker.ensure()
    with cache.lock("images"):
        for name in names:
            build(name)
        if command.works("docker", "exec", clients.NODE, "true"):
            load(names)
    line(f"images ready: {', '.join(tag(name) for name in names)}")


if __name__ == "__main__":
    program(main)

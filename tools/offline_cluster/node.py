"""The image of a kind node: the published one, or one made of Debian packages and Go modules."""

import re
import shutil
from pathlib import Path

from tools.offline_cluster import base, cache, clients, command, docker, golang, wait
from tools.offline_cluster.say import Failure, line, step

KUBERNETES = "v1.34.4"
KIND = "v0.33.0"
PROVISIONER = "v0.0.30"
PUBLISHED = "kindest/node:v1.34.0"
OLDEST_KIND = (0, 30)  # the first one made for the published node
RECIPE = Path(__file__).with_name("node")
# raise it when the steps below come to make another image of the same ingredients
STEPS = "1"
PRELOAD = "espha-preload"
CONTAINERD_SECONDS = 60


def recipe() -> str:
    """Return the digest of all that the node image is made of, in seconds and offline."""
    return cache.digest(
        RECIPE, golang.SOURCES, STEPS, KUBERNETES, KIND, PROVISIONER, golang.architecture()
    )


def built_name() -> str:
    """Return the name of the node image that is built here; it tells the recipe."""
    return f"espha/node:{KUBERNETES}-{recipe()}"


def image() -> str:
    """Return the name of a node image that Docker has: here already, else pulled, else built."""
    built = built_name()
    if docker.has(built):
        return built
    if docker.pulled(PUBLISHED):
        return PUBLISHED
    line(f"Docker cannot pull {PUBLISHED}: building the node offline takes about half an hour")
    with step("making the Kubernetes node image"):
        _build(built)
    return built


def is_built(image_name: str) -> bool:
    """Say whether a node image is one of ours, which brings its own CNI."""
    return image_name.startswith("espha/node:")


def kind() -> Path:
    """Return the kind command: the machine's own for the published node, else one built here.

    A node built here carries files of kind's version KIND, so only that version runs it.
    """
    own = clients.own("kind")
    if own and not docker.has(built_name()) and suits(command.answer(own, "version") or ""):
        return own
    return golang.install("kind", "sigs.k8s.io/kind", KIND)


def suits(version: str) -> bool:
    """Say whether the answer of `kind version` names a kind that runs the published node."""
    match = re.search(r"\bv(\d+)\.(\d+)", version)
    return match is not None and (int(match[1]), int(match[2])) >= OLDEST_KIND


def image_names(kubeadm: Path) -> dict[str, list[str]]:
    """Return the names under which kubeadm looks for each component's image.

    kubeadm itself is asked, so that no version and no registry is written down twice.
    """
    answer = command.run(kubeadm, "config", "images", "list", "--kubernetes-version", KUBERNETES)
    return sorted_names(answer.split())


def sorted_names(images: list[str]) -> dict[str, list[str]]:
    """Sort full image names by the component that serves them: kube, etcd, coredns, pause."""
    sorts: dict[str, list[str]] = {"kube": [], "etcd": [], "coredns": [], "pause": []}
    for name in images:
        short = name.rpartition("/")[2].partition(":")[0]
        component = "kube" if short.startswith("kube-") else short
        if component in sorts:
            sorts[component].append(name)
    missing = [component for component, names in sorts.items() if not names]
    if missing:
        raise Failure(f"kubeadm names no image for {', '.join(missing)}: {' '.join(images)}")
    return sorts


def _build(tag: str) -> None:
    programs = _programs()
    files = golang.module("sigs.k8s.io/kind", KIND) / "images" / "base" / "files"
    base_image = base.image(pull=False)  # we are here because nothing can be pulled
    with cache.scratch() as path:
        bare = f"espha/node-without-images:{KUBERNETES}"
        with step("installing the node's packages"):
            _node_context(path / "node", files, programs["kube"])
            arguments = {"BASE_IMAGE": base_image, "KUBERNETES_VERSION": KUBERNETES}
            docker.build(bare, path / "node", arguments=arguments)
        with step("making the control plane's images"):
            tags = _component_images(path, files, programs, base_image)
        with step("loading them into the node image"):
            command.run("docker", "save", "-o", path / "images.tar", *tags)
            _preload(bare, path / "images.tar", tag)
    _remove_older(tag)


def _remove_older(tag: str) -> None:
    """Remove node images of earlier recipes; Docker keeps the one that a cluster runs on."""
    listed = command.answer("docker", "images", "--format", "{{.Repository}}:{{.Tag}}") or ""
    for name in listed.split():
        if is_built(name) and name != tag:
            command.answer("docker", "rmi", name)


def _programs() -> dict[str, Path]:
    version = "k8s.io/component-base/version."
    symbols = {f"{version}gitVersion": KUBERNETES, f"{version}gitTreeState": "clean"}
    provisioner = "github.com/rancher/local-path-provisioner"
    return {
        "kube": golang.build("kube", symbols=symbols),
        "etcd": golang.build("etcd"),
        "coredns": golang.build("coredns"),
        "pause": golang.build("pause"),
        "local-path-provisioner": golang.install(
            "local-path-provisioner", provisioner, PROVISIONER
        ),
    }


def _node_context(path: Path, files: Path, kube: Path) -> None:
    shutil.copytree(RECIPE, path, ignore=shutil.ignore_patterns("components"))
    # Go's module cache is read-only, and so would be the copy
    shutil.copytree(files, path / "kind-files", copy_function=shutil.copyfile)
    for folder in [path / "kind-files", *(path / "kind-files").rglob("*/")]:
        folder.chmod(0o755)
    shutil.copy(kube, path / "kube")


def _component_images(
    path: Path, files: Path, programs: dict[str, Path], base_image: str
) -> list[str]:
    """Build one image a component under every name it is looked for; return all names."""
    kubeadm = path / "kubeadm"
    kubeadm.symlink_to(programs["kube"])
    names = image_names(kubeadm)
    config = (files / "etc" / "containerd" / "config.toml").read_text()
    names["pause"] += re.findall(r'sandbox_image = "([^"]+)"', config)
    names["local-path-provisioner"] = ["espha/local-path-provisioner:local"]
    for component, tags in names.items():
        context = path / f"{component}-image"
        _component_context(component, context, programs[component], base_image)
        for tag in tags:
            docker.build(tag, context, arguments={"BASE_IMAGE": base_image})
    return [tag for tags in names.values() for tag in tags]


def _component_context(component: str, context: Path, program: Path, base_image: str) -> None:
    own = RECIPE / "components" / component
    if own.is_dir():
        shutil.copytree(own, context)
    else:
        # the provisioner's helper pod runs its scripts with this image's /bin/sh
        below = base_image if component == "local-path-provisioner" else "scratch"
        context.mkdir()
        text = (
            f"ARG BASE_IMAGE\nFROM {below}\nCOPY {component} /usr/local/bin/{component}\n"
            f"ENV PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin\n"
            f'ENTRYPOINT ["/usr/local/bin/{component}"]\n'
        )
        (context / "Containerfile").write_text(text)
    shutil.copy(program, context / component)


def _preload(bare: str, archive: Path, tag: str) -> None:
    """Put the images of an archive into a node image's containerd and commits that as `tag`."""
    command.answer("docker", "rm", "-f", PRELOAD)
    mount = f"{archive.parent}:/mnt:ro"
    start = ("--privileged", "--entrypoint", "/usr/bin/containerd")
    command.run("docker", "run", "-d", "--name", PRELOAD, "-v", mount, *start, bare)
    try:
        ctr = ("docker", "exec", PRELOAD, "ctr", "-n", "k8s.io")
        if not wait.until(lambda: command.works(*ctr, "version"), CONTAINERD_SECONDS):
            raise Failure(f"containerd in {PRELOAD} does not answer; see `docker logs {PRELOAD}`")
        command.run(*ctr, "images", "import", "--no-unpack", f"/mnt/{archive.name}")
        # containerd must close its database; the image's own stop signal is for systemd
        command.run("docker", "kill", "-s", "SIGTERM", PRELOAD)
        command.run("docker", "wait", PRELOAD, timeout=CONTAINERD_SECONDS)
        changes = ('ENTRYPOINT ["/usr/local/bin/entrypoint", "/sbin/init"]', "CMD []")
        options = [option for change in changes for option in ("--change", change)]
        command.run("docker", "commit", *options, PRELOAD, tag)
    finally:
        command.answer("docker", "rm", "-f", PRELOAD)

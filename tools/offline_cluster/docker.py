"""A Docker to work with: the user's own, or one that we install and start as root."""

import contextlib
import os
import shutil
import signal
import subprocess
from pathlib import Path

from tools.offline_cluster import cache, command, debian, wait
from tools.offline_cluster.say import Failure, line, step

PID = Path("/run/espha-dockerd.pid")
READY_SECONDS = 90
REACH_SECONDS = 20
SYS_RESOURCE_BIT = 24


def ensure() -> None:
    """Return once `docker` answers; install and start it where that is possible.

    Raises:
        Failure: there is no Docker and this user may not start one.
    """
    if command.works("docker", "info"):
        return
    if not debian.is_root():
        raise Failure(
            "Docker does not answer. Start it (and make sure that this user may use it: "
            "`docker info`), or run this as root to have it installed and started."
        )
    with cache.lock("docker"):
        if not command.works("docker", "info"):
            _start()


def stop() -> None:
    """End the dockerd that we started, if we did; anybody else's is left alone."""
    pid = _ours()
    if pid is None:
        return
    with step("stopping dockerd"):
        os.kill(pid, signal.SIGTERM)
        if not wait.until(lambda: not _alive(pid), READY_SECONDS):
            raise Failure(f"dockerd (process {pid}) does not end")
        PID.unlink(missing_ok=True)


def build(
    tag: str, context: Path, *, arguments: dict[str, str] | None = None, label: str = ""
) -> None:
    """Build an image from a directory that holds its Containerfile.

    Args:
        tag: the image's name.
        context: directory with the Containerfile and all that it copies.
        arguments: build arguments.
        label: value for the label `dev.espha.inputs`, by which `has` knows the image again.
    """
    options = [f"--build-arg={key}={value}" for key, value in (arguments or {}).items()]
    options += [f"--label=dev.espha.inputs={label}"] if label else []
    file = context / "Containerfile"
    replaced = command.answer("docker", "image", "inspect", "-f", "{{.Id}}", tag)
    command.run("docker", "build", "-q", "-t", tag, "-f", file, *options, context)
    if replaced and not _tags(replaced.strip()):
        _remove(replaced.strip())


def remove_older(repository: str, keep: int = 2) -> None:
    """Remove all images of a repository but the newest ones, and those that others stand on."""
    template = "{{.Repository}}:{{.Tag}}"
    listed = command.answer("docker", "images", "--format", template, repository) or ""
    for older in listed.split()[keep:]:
        _remove(older)


def _tags(image: str) -> list[str]:
    """Return the names of an image, of which somebody may have given it another one."""
    template = '{{join .RepoTags " "}}'
    return (command.answer("docker", "image", "inspect", "-f", template, image) or "").split()


def _remove(image: str) -> None:
    """Remove an image, unless something uses it; what is left costs room on the disk only."""
    command.answer("docker", "rmi", image)


def has(tag: str, label: str | None = None) -> bool:
    """Say whether an image is here, and made of the inputs with that label."""
    template = '{{index .Config.Labels "dev.espha.inputs"}}'
    found = command.answer("docker", "image", "inspect", "-f", template, tag)
    return found is not None and (label is None or found.strip() == label)


def image_id(tag: str) -> str:
    """Return an image's id, `sha256:…`."""
    return command.run("docker", "image", "inspect", "-f", "{{.Id}}", tag).strip()


def pulled(image: str) -> bool:
    """Say whether a published image is here, after pulling it if its registry can be reached."""
    if has(image):
        return True
    if not command.works("docker", "manifest", "inspect", image, timeout=REACH_SECONDS):
        return False
    with step(f"pulling {image}"):
        return command.works("docker", "pull", "-q", image, timeout=1800)


def lacks_sys_resource(status: str) -> bool:
    """Say whether the text of /proc/self/status shows a bounding set without the capability."""
    lines = dict(line.split(":", 1) for line in status.splitlines() if ":" in line)
    return not int(lines["CapBnd"], 16) >> SYS_RESOURCE_BIT & 1


def _start() -> None:
    debian.need("dockerd", "docker.io", "iptables", "ca-certificates")
    debian.need("iptables", "iptables")
    if _ours() is not None:
        line("dockerd runs but does not answer yet")
        _wait(None)
        return
    log = cache.directory() / "dockerd.log"
    with step("starting dockerd"), log.open("w") as output:
        # its own session: Ctrl-C at the terminal must not end the cluster's ground
        daemon = subprocess.Popen(
            ["dockerd", *_runtime()],
            stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True,
        )  # fmt: skip
        PID.write_text(f"{daemon.pid}\n")
        _wait(daemon)


def _runtime() -> list[str]:
    """Return the options that put our wrapper around runc where privileged needs it."""
    if not lacks_sys_resource(Path("/proc/self/status").read_text()):
        return []
    wrapper = cache.directory() / "runc-without-sys-resource"
    shutil.copyfile(Path(__file__).with_name("runc_wrapper.py"), wrapper)
    wrapper.chmod(0o755)
    return [f"--add-runtime=espha={wrapper}", "--default-runtime=espha"]


def _wait(daemon: subprocess.Popen[bytes] | None) -> None:
    def answers() -> bool:
        return command.works("docker", "info", timeout=10)

    def ended() -> bool:
        return daemon is not None and daemon.poll() is not None

    if not (wait.until(lambda: answers() or ended(), READY_SECONDS) and answers()):
        log = cache.directory() / "dockerd.log"
        tail = "\n".join(log.read_text().splitlines()[-15:])
        raise Failure(f"dockerd does not come up; the end of {log}:\n{tail}")


def _ours() -> int | None:
    """Return the id of the dockerd that we started, if it still runs."""
    with contextlib.suppress(FileNotFoundError, ValueError):
        pid = int(PID.read_text())
        return pid if _alive(pid) else None
    return None


def _alive(pid: int) -> bool:
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):
        name = Path(f"/proc/{pid}/comm").read_text().strip()
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        return name == "dockerd" and state != "Z"
    return False

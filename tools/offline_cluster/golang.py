"""Go programs, built once: from this folder's go/, or straight from a module."""

import os
import platform
import re
import shutil
import stat
from pathlib import Path

from tools.offline_cluster import cache, command, debian
from tools.offline_cluster.say import Failure, step

TOOLCHAIN = "1.26.8"
OLDEST = (1, 24)
SOURCES = Path(__file__).with_name("go")
ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}


def architecture() -> str:
    """Return this machine's architecture in the words of Go and Debian.

    Raises:
        Failure: neither amd64 nor arm64.
    """
    machine = platform.machine()
    if machine not in ARCHITECTURES:
        raise Failure(f"no build for {machine}; use a machine with x86_64 or aarch64")
    return ARCHITECTURES[machine]


def build(name: str, *, symbols: dict[str, str] | None = None) -> Path:
    """Build go/<name> and return the program's path; go.sum pins every dependency.

    Args:
        name: the folder's and the program's name.
        symbols: string variables to set at link time, such as a version.
    """
    flags = ["-s", "-w", *(f"-X {key}={value}" for key, value in (symbols or {}).items())]

    def compile_into(path: Path) -> None:
        with step(f"building {name} with Go"):
            line = ("build", "-trimpath", "-ldflags", " ".join(flags), "-o", path / name, ".")
            command.run(go(), *line, cwd=SOURCES / name, env=_environment("-mod=readonly"))

    key = cache.digest(SOURCES / name, *flags, architecture())
    return cache.once(f"go-{name}", key, compile_into) / name


def install(name: str, package: str, version: str) -> Path:
    """Build a program from a public module and return its path."""

    def compile_into(path: Path) -> None:
        with step(f"building {name} {version} with Go"):
            line = ("install", "-trimpath", "-ldflags", "-s -w", f"{package}@{version}")
            command.run(go(), *line, cwd=path, env={**_environment(""), "GOBIN": str(path)})

    key = cache.digest(package, version, architecture())
    return cache.once(f"go-{name}", key, compile_into) / name


def module(path: str, version: str) -> Path:
    """Return the directory of a module's files in Go's module cache."""
    line = ("mod", "download", "-json", f"{path}@{version}")
    # outside every module, so that no go.mod of somebody's working directory is touched
    text = command.run(go(), *line, cwd=cache.directory(), env=_environment("-mod=mod"))
    return Path(_field(text, "Dir"))


def go() -> Path:
    """Return a Go command that is new enough: the machine's own, or one fetched as a module."""
    own = shutil.which("go") or shutil.which("go", path="/usr/local/go/bin")
    if own and is_new_enough(command.answer(own, "version") or ""):
        return Path(own)
    return _fetched() / "bin" / "go"


def is_new_enough(version: str) -> bool:
    """Say whether the answer of `go version` names a Go that can build everything here."""
    match = re.search(r"\bgo(\d+)\.(\d+)", version)
    return match is not None and (int(match[1]), int(match[2])) >= OLDEST


def _fetched() -> Path:
    """Fetch the toolchain as the module it is published as; any old Go can do that."""

    def fetch(path: Path) -> None:
        with step(f"fetching Go {TOOLCHAIN}"):
            version = f"v0.0.1-go{TOOLCHAIN}.linux-{architecture()}"
            line = ("mod", "download", "-json", f"golang.org/toolchain@{version}")
            text = command.run("go", *line, cwd=path, env=_environment("-mod=mod"))
            shutil.copytree(_field(text, "Dir"), path, dirs_exist_ok=True)
            _make_usable(path)

    key = cache.digest(TOOLCHAIN, architecture())
    if not (cache.directory() / f"toolchain-{key}").is_dir():
        debian.need("go", "golang-go", "ca-certificates")
    return cache.once("toolchain", key, fetch)


def _make_usable(path: Path) -> None:
    """Give back what a module loses: write permission for us, the execute bit of programs."""
    for place in [path, *path.rglob("*")]:
        inside = place.relative_to(path).as_posix()
        program = place.is_file() and inside.startswith(("bin/", "pkg/tool/"))
        extra = stat.S_IXUSR | stat.S_IXGRP | stat.S_IXOTH if program else 0
        place.chmod(place.stat().st_mode | stat.S_IWUSR | extra)


def _field(text: str, field: str) -> str:
    """Return one field of the JSON that `go mod download -json` prints amid its messages."""
    match = re.search(rf'"{field}": "([^"]+)"', text)
    if match is None:
        raise Failure(f"go mod download did not say where it put the module:\n{text}")
    return match[1]


def _environment(flags: str) -> dict[str, str]:
    home = os.environ.get("HOME") or "/root"
    # a checkout may lie in a git repository of another owner, which stops the version stamp
    return {"CGO_ENABLED": "0", "GOTOOLCHAIN": "local", "HOME": home, "GOWORK": "off",
            "GOFLAGS": f"-buildvcs=false {flags}".strip()}  # fmt: skip

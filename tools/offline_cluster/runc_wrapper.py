#!/usr/bin/python3 -IS
"""Run runc without what this machine cannot give: CAP_SYS_RESOURCE and raised limits.

Where the capability bounding set lacks CAP_SYS_RESOURCE, every privileged container fails at its
start, because Docker asks for all capabilities. Docker is told to call this program instead of
runc; it takes the capability out of the container's description and hands over.
"""

import json
import os
import sys
from pathlib import Path
from typing import Any

CAPABILITY = "CAP_SYS_RESOURCE"


def without_capability(process: dict[str, Any]) -> dict[str, Any]:
    """Return an OCI process without the capability and without resource limits."""
    sets = process.get("capabilities") or {}
    kept = {name: [cap for cap in caps if cap != CAPABILITY] for name, caps in sets.items()}
    rest = {key: value for key, value in process.items() if key != "rlimits"}
    return {**rest, "capabilities": kept} if sets else rest


def described(arguments: list[str]) -> Path | None:
    """Return the file in which runc's arguments describe a process, if they name one."""
    names = ("--bundle", "-b", "--process", "-p")
    for place, argument in enumerate(arguments):
        name, equals, value = argument.partition("=")
        if name in names:
            path = Path(value if equals else arguments[place + 1])
            return path / "config.json" if name in names[:2] else path
    return None


def main() -> None:
    """Rewrite the description, then becomes runc."""
    arguments = sys.argv[1:]
    path = described(arguments)
    if path is not None and {"create", "run", "exec"} & set(arguments):
        content = json.loads(path.read_text())
        inside = content.get("process")
        changed = (
            without_capability(content)
            if inside is None
            else {**content, "process": without_capability(inside)}
        )
        path.write_text(json.dumps(changed))
    os.execvp("runc", ["runc", *arguments])  # noqa: S606  (no shell is what is wanted)


if __name__ == "__main__":
    main()

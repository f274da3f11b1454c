"""The layers of the packages, as import-linter checks them, in Markdown."""

import tomllib
from typing import Any, Final

from tools import ROOT

_PROJECT: Final = ROOT / "pyproject.toml"


def layers(name: str) -> str:
    """Return the layers of the contract `name`, from the top to the ground, as a list."""
    return "".join(f"{number}. {_packages(one)}\n" for number, one in enumerate(_layers(name), 1))


def forbidden() -> str:
    """Return the contracts that forbid imports, one a line."""
    found = (one for one in _contracts() if one["type"] == "forbidden")
    return "".join(
        f"- {one['name'].capitalize()}: {_list(one['source_modules'])} must not import "
        f"{_list(one['forbidden_modules'])}.\n"
        for one in found
    )


def _contracts() -> list[dict[str, Any]]:
    text = _PROJECT.read_text(encoding="utf-8")
    contracts: list[dict[str, Any]] = tomllib.loads(text)["tool"]["importlinter"]["contracts"]
    return contracts


def _layers(name: str) -> list[str]:
    found = next(one for one in _contracts() if one["name"] == name)
    return list(found["layers"])


def _packages(layer: str) -> str:
    return " ".join(f"`{part}`" if part not in "|:" else "and" for part in layer.split())


def _list(modules: list[str]) -> str:
    return ", ".join(f"`{one}`" for one in modules)

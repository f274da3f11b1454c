"""The layers of the packages, as import-linter checks them, in Markdown."""

import tomllib
from typing import Any, Final

from tools import ROOT

_PROJECT: Final = ROOT / "pyproject.toml"


def layers() -> str:
    """Return the layers of each contract that has some, from the top to the ground."""
    found = (one for one in _contracts() if one["type"] == "layers")
    return "\n".join(f"**{_capital(one['name'])}:**\n\n{_numbered(one['layers'])}" for one in found)


def _numbered(layers: list[str]) -> str:
    return "".join(f"{number}. {_packages(one)}\n" for number, one in enumerate(layers, 1))


def _capital(name: str) -> str:
    return f"{name[0].upper()}{name[1:]}"


def rules() -> str:
    """Return the other contracts, one a line."""
    return "".join(f"- {_rule(one)}\n" for one in _contracts() if one["type"] != "layers")


def _rule(contract: dict[str, Any]) -> str:
    head = _capital(contract["name"])
    if contract["type"] == "independence":
        return f"{head}: {_list(contract['modules'])} must not import one another."
    sources, targets = contract["source_modules"], contract["forbidden_modules"]
    return f"{head}: {_list(sources)} must not import {_list(targets)}."


def _contracts() -> list[dict[str, Any]]:
    text = _PROJECT.read_text(encoding="utf-8")
    contracts: list[dict[str, Any]] = tomllib.loads(text)["tool"]["importlinter"]["contracts"]
    return contracts


def _packages(layer: str) -> str:
    return ", ".join(f"`{part}`" for part in layer.split() if part not in "|:")


def _list(modules: list[str]) -> str:
    return ", ".join(f"`{one}`" for one in modules)

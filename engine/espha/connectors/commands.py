"""Command lines of adapters in a model; they are read, never run."""

import shlex
from typing import Final

_FILE_ADAPTERS: Final = frozenset({"dfesp_fs_adapter", "dfesp_fs_adapter.exe"})
_OPTIONS: Final = {
    "-k": "type",
    "-h": "url",
    "-f": "fsname",
    "-t": "fstype",
    "-b": "blocksize",
    "-d": "dateformat",
    "-r": "rate",
    "-m": "maxevents",
}
"""Options of the older way to write the command, and the property that each of them is."""


def adapter_properties(command: str) -> dict[str, str]:
    """Return the properties of an fs connector that does what a file adapter's command says.

    Understood are `dfesp_fs_adapter -C name=value,name=value` and `-k pub -f file -t csv …`.

    Raises:
        ValueError: it is another adapter, or an option is not known; the text says which.
    """
    try:
        words = shlex.split(command)
    except ValueError:
        raise ValueError("property 'command' has a quote that is not closed") from None
    if not words:
        raise ValueError("property 'command' is missing")
    program = words[0].rsplit("/", maxsplit=1)[-1]
    if program not in _FILE_ADAPTERS:
        raise ValueError(f"there is no substitute for {program[:60]!r}")
    return _properties(words[1:])


def _properties(words: list[str]) -> dict[str, str]:
    result: dict[str, str] = {}
    while words:
        option = words.pop(0)
        if option not in {"-C", *_OPTIONS}:
            raise ValueError(f"option {option[:60]!r} is not known")
        if not words:
            raise ValueError(f"option {option} has no value")
        value = words.pop(0)
        if option == "-C":
            result |= _pairs(value)
        else:
            result[_OPTIONS[option]] = value
    return result


def _pairs(text: str) -> dict[str, str]:
    """Read `name=value,name=value`; a part without `=` goes on with the value before it."""
    pairs: dict[str, str] = {}
    name = ""
    for part in text.split(","):
        start, equals, value = part.partition("=")
        if equals:
            name = start.strip()
            pairs[name] = value
        elif name:
            pairs[name] += f",{part}"
        else:
            raise ValueError(f"{part[:60]!r} is not name=value")
    return pairs

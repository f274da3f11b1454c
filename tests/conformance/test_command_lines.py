"""Every command line of an adapter in the corpus and the seeds is understood, or refused by name.

Skipped without a corpus.
"""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from conformance.corpus import corpus_folder
from espha.adapters.translation import translate
from espha.connectors.commands import read_command
from espha.connectors.kafka_cfg import read_kafka_cfg

CORPUS = corpus_folder()
pytestmark = pytest.mark.skipif(
    CORPUS is None, reason="there is no corpus in ../shared/corpus, and ESPHA_CORPUS names none"
)

_COMMAND = re.compile(r"(?:^|\s|/)dfesp_\w+(?:_adapter|_publisher)\s.*-[kCu]\s", re.MULTILINE)
_WRAPPED = re.compile(r"\s*(-[A-Za-z]\s|\"dfESP|kafka -|dstatdetail)")
_CFG = re.compile(
    # One of them is cut off: it ends where prose begins.
    r"^(?:\{\s*)?kafka\s*=?\s*\{[^}]*\}\s*sas\s*=?\s*\{(?:(?!\n\s*\n\s*[A-Z])[^}])*\}?",
    re.MULTILINE,
)
_TEXTS = frozenset({".md", ".sh", ".txt", ".xml", ".cfg"})
_LARGEST = 1_000_000


def texts() -> Iterator[tuple[Path, str]]:
    """Return each text of the corpus and the seeds."""
    if CORPUS is None:
        return
    for folder in (CORPUS, CORPUS.parent / "seeds"):
        for path in sorted(folder.rglob("*")):
            if path.suffix in _TEXTS and path.stat().st_size <= _LARGEST:
                yield path, path.read_text(encoding="utf-8", errors="replace")


def commands() -> list[str]:
    """Return each command line once, with the lines in which it goes on."""
    found = []
    for _, text in texts():
        lines = text.splitlines()
        for at, line in enumerate(lines):
            if _COMMAND.search(line):
                more = [line]
                while at + len(more) < len(lines) and _WRAPPED.match(lines[at + len(more)]):
                    more.append(lines[at + len(more)])
                found.append("\n".join(more))
    return list(dict.fromkeys(found))


def cfgs() -> list[str]:
    """Return each kafka.cfg once."""
    return list(dict.fromkeys(found[0] for _, text in texts() for found in _CFG.finditer(text)))


COMMANDS, CFGS = commands(), cfgs()


def test_there_are_command_lines() -> None:
    assert len(COMMANDS) >= 14
    assert len(CFGS) >= 5


def _read(path: Path) -> str:
    found = next((text for one, text in texts() if one.name == path.name), None)
    if found is None:
        raise FileNotFoundError(2, "No such file or directory")
    return found


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_line_is_understood(command: str) -> None:
    line = read_command(command)
    found = translate(line, _read)
    if line.program != "dfesp_fs_adapter":
        assert [one for one in found.problems if line.program in one or "which database" in one]
    elif "fsname" not in line.properties or "url" not in line.properties:
        missing = "url" if "fsname" in line.properties else "property 'fsname'"
        assert [
            problem for problem in found.problems if problem.startswith(f"{missing} is missing")
        ]
    else:
        assert found.problems == ()
        assert found.config is not None


@pytest.mark.parametrize("text", CFGS)
def test_a_kafka_cfg_is_understood(text: str) -> None:
    found = read_kafka_cfg(text)
    assert found.problems == ()
    assert found.bootstrap

"""Configuration files of the adapters."""

from pathlib import Path

import pytest

from espha.adapters.config import ConfigError, load
from espha.adapters.file_input.spec import InputFile
from espha.adapters.file_output.run import header_line
from espha.adapters.types import InputConfig, OutputConfig
from espha.model import Field

FIELDS = (Field("index", "int64", True), Field("sum20", "double"))


def test_the_documented_example_is_read(tmp_path: Path) -> None:
    path = tmp_path / "adapter.json"
    path.write_text(
        '{"name": "memory", "window": "cq/memory", "file": {"path": "/data/memory.csv",'
        ' "growing": true, "headerLines": 1, "autogenField": false, "opcode": false,'
        ' "flags": false, "dateFormat": "%Y", "delimiter": ","}}'
    )
    config = load(path, InputConfig)
    assert isinstance(config.settings, InputFile)
    assert config.settings.header_lines == 1
    assert not config.settings.autogen_field
    path.write_text(config.text())
    assert load(path, InputConfig) == config


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ('{"name": "x"}', "window: Field required"),
        ('{"name": "x", "window": "a/b", "file": {"path": "p", "colour": 1}}', "file.colour"),
        ('{"name": "x", "window": "a/b", "file": {"path": "p", "header": "yes"}}', "file.header"),
        ('{"name": "x", "window": "a/b"}', "file: Value error, give exactly one of: file"),
        ("{", "adapter.json"),
    ],
)
def test_what_is_wrong_is_named(tmp_path: Path, text: str, sentence: str) -> None:
    path = tmp_path / "adapter.json"
    path.write_text(text)
    with pytest.raises(ConfigError, match=sentence):
        load(path, OutputConfig)


def test_a_file_that_is_not_there_is_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"nothing.json: No such file"):
        load(tmp_path / "nothing.json", OutputConfig)


def test_headers() -> None:
    assert header_line("none", FIELDS) == []
    assert header_line("true", FIELDS) == [b"index,sum20"]
    assert header_line("full", FIELDS) == [b"opcode,flags,index,sum20"]

"""`espha adapter explain` and what `espha adapter run` starts."""

import json
import re
from pathlib import Path

import pytest

from espha.adapters.command_lines import explain, prepare
from espha.adapters.config import ConfigError, load
from espha.adapters.translation import Given
from espha.adapters.types import InputConfig
from espha.protocol.settings import SettingsError
from support.models import ROOT

URL = "dfESP://engine.example:61001/p/cq/source"
CFG = """\
kafka { hostport = "broker:9092" }
sas { hotfailover=true failovergroup="pair1" zookeeperhostport="keeper:2181" }
"""


@pytest.fixture
def cfg(tmp_path: Path) -> Path:
    path = tmp_path / "kafka.cfg"
    path.write_text(CFG)
    return path


def explained(command: str, cfg: Path | None = None) -> tuple[int, str, list[str]]:
    """Return the exit code, the configuration and the lines on everything else."""
    out: list[str] = []
    said: list[str] = []
    code = explain(command, Given(kafka_cfg=cfg), out.append, said.append)
    return code, "\n".join(out), said


def test_what_is_printed_is_a_configuration(cfg: Path, tmp_path: Path) -> None:
    code, text, said = explained(f"dfesp_fs_adapter -k pub -h {URL} -f in.csv -i -l kafka", cfg)
    assert code == 0
    file = tmp_path / "adapter.json"
    file.write_text(text)
    assert load(file, InputConfig).window == "cq/source"
    assert said == [
        "run it: espha supervise -- espha adapter input --config FILE",
        "with: ESPHA_BOOTSTRAP=broker:9092",
        "with: ESPHA_ZOOKEEPER=keeper:2181",
        "with: ESPHA_ROOT=/ESP/adapters/pair1",
        "with: ESPHA_PREFIX=engine.example_61001, where topics have the names that the url means; "
        "elsewhere what the model or the deployment names them after",
    ]


def test_the_documented_example_is_what_is_printed() -> None:
    page = (ROOT / "docs" / "how-to" / "run-adapters.md").read_text()
    found = re.search(r"\$ espha adapter explain '([^']*)'\n(.*?)\n```", page, re.DOTALL)
    assert found
    code, text, said = explained(found[1])
    assert code == 0
    assert found[2] == "\n".join([text, *said])


def test_a_subscriber_stands_for_no_election(cfg: Path) -> None:
    code, text, said = explained(f"dfesp_fs_adapter -k sub -h {URL} -f out.csv -l kafka", cfg)
    assert code == 0
    assert json.loads(text)["file"] == {"path": "out.csv", "missing": "new"}
    assert said[0] == (
        "run it: espha supervise --no-election -- espha adapter output --config FILE"
    )
    assert not [line for line in said if "ZOOKEEPER" in line]


@pytest.mark.parametrize(
    ("command", "line"),
    [
        ("", "there is no command"),
        ("dfesp_fs_adapter -f 'x", "there is a quote that is not closed"),
        (f"dfesp_fs_adapter -k pub -h {URL} -f x -Z", "error: option '-Z' is not known; what it "),
    ],
)
def test_what_is_not_understood_ends_with_2(command: str, line: str) -> None:
    code, text, said = explained(command)
    assert (code, text) == (2, "")
    assert said[0].startswith(line)


def test_a_command_line_says_where_kafka_is(cfg: Path) -> None:
    words = ["-k", "pub", "-h", URL, "-f", "in.csv", "-i", "-l", "kafka", "-j", str(cfg)]
    ready = prepare("/opt/bin/dfesp_fs_adapter", words, environment={})
    assert ready.election
    assert ready.project == "p"
    told = ready.settings
    assert (told.bootstrap, told.zookeeper) == ("broker:9092", "keeper:2181")
    assert told.root == "/ESP/adapters/pair1"
    assert told.http_port == 0


def test_the_environment_wins(cfg: Path) -> None:
    words = ["-k", "pub", "-h", URL, "-f", "in.csv", "-i", "-l", "kafka", "-j", str(cfg)]
    environment = {"ESPHA_BOOTSTRAP": "ours:9092", "ESPHA_HTTP_PORT": "8080", "ESPHA_NAME": "me"}
    told = prepare("dfesp_fs_adapter", words, environment=environment).settings
    assert (told.bootstrap, told.http_port, told.name) == ("ours:9092", 8080, "me")


def test_options_are_properties() -> None:
    words = ["--type", "sub", "--url", URL, "--fsname=out.csv", "--header", "full"]
    ready = prepare(
        "dfesp_fs_adapter", words, Given("mine"), environment={"ESPHA_BOOTSTRAP": "b:1"}
    )
    assert not ready.election
    assert json.loads(ready.config.text()) == {
        "name": "mine",
        "window": "cq/source",
        "file": {"path": "out.csv", "header": "full", "missing": "new"},
    }


def test_without_kafka_or_zookeeper_the_variable_is_named(cfg: Path) -> None:
    words = ["-k", "pub", "-h", URL, "-f", "in.csv"]
    with pytest.raises(SettingsError, match="ESPHA_BOOTSTRAP: Field required"):
        prepare("dfesp_fs_adapter", words, environment={})
    cfg.write_text("kafka { hostport=b:1 } sas { hotfailover=true failovergroup=g }")
    with pytest.raises(ConfigError, match="hotfailover needs ZooKeeper: give zookeeperhostport"):
        prepare("dfesp_fs_adapter", words, Given(kafka_cfg=cfg), environment={})


def test_a_pair_without_a_group_is_refused(cfg: Path) -> None:
    cfg.write_text("kafka { hostport=b:1 } sas { hotfailover=true zookeeperhostport=k:1 }")
    words = ["-k", "pub", "-h", URL, "-f", "in.csv"]
    with pytest.raises(ConfigError, match="hotfailover needs a failovergroup"):
        prepare("dfesp_fs_adapter", words, Given(kafka_cfg=cfg), environment={})


def test_all_that_is_wrong_with_a_command_line_is_said() -> None:
    with pytest.raises(ConfigError, match=r"(?s)'-Z' is not known.*url is missing"):
        prepare("dfesp_fs_adapter", ["-Z", "-k", "pub", "-f", "x"], environment={})


def test_what_is_far_too_large_is_not_read(tmp_path: Path) -> None:
    (tmp_path / "large").write_text("#" * ((1 << 20) + 1))
    command = f"dfesp_fs_adapter -k pub -h {URL} -f x -l kafka -j {tmp_path}/large"
    code, _, said = explained(command)
    assert code == 2
    assert said[0].endswith("/large: larger than any kafka.cfg")

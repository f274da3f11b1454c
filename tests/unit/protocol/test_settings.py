"""Settings: read from the environment, and written as one."""

from pathlib import Path

import pytest

from espha.protocol.settings import Settings, SettingsError, load_settings, variable

FULL = Settings(
    name="engine-0",
    bootstrap="kafka:9092",
    zookeeper="zookeeper:2181",
    session_ms=1200,
    model=Path("/m.xml"),
    snapshot_interval_s=30,
    peers="a:1,b:2",
    token="secret",  # noqa: S106 - a test's own
    ack_log=Path("/acks"),
)


def test_an_environment_says_what_the_settings_do() -> None:
    assert load_settings(FULL.environment()) == FULL


def test_what_is_not_set_is_left_out() -> None:
    assert Settings(bootstrap="k:1", snapshot_interval_s=60).environment() == {
        "ESPHA_BOOTSTRAP": "k:1",
        "ESPHA_SNAPSHOT_INTERVAL_S": "60",
    }


def test_other_variables_are_none_of_our_business() -> None:
    assert load_settings({"ESPHA_BOOTSTRAP": "k:1", "ESPHA_FUZZ": "7", "PATH": "x"}).prefix == ""


def test_every_wrong_variable_is_named() -> None:
    with pytest.raises(SettingsError) as raised:
        load_settings({"ESPHA_SESSION_MS": "soon", "ESPHA_PEERS": "nowhere"})
    lines = str(raised.value).splitlines()
    assert [line.partition(":")[0] for line in lines] == [
        "ESPHA_BOOTSTRAP",
        "ESPHA_SESSION_MS",
        "ESPHA_PEERS",
    ]


@pytest.mark.parametrize("master", ["local", "local[1]", "local[16]", "local[*]"])
def test_an_engine_runs_on_a_local_master(master: str) -> None:
    told = {"ESPHA_BOOTSTRAP": "k:1", "ESPHA_SPARK_MASTER": master}
    assert load_settings(told).spark_master == master


@pytest.mark.parametrize(
    "master",
    ["local[1,2]", "local[0]", "local-cluster[1,1,512]", "local[1]\n", "localhost", "spark://h:1"],
)
def test_another_master_is_refused(master: str) -> None:
    with pytest.raises(SettingsError, match=r"ESPHA_SPARK_MASTER: .* shares one JVM with Spark"):
        load_settings({"ESPHA_BOOTSTRAP": "k:1", "ESPHA_SPARK_MASTER": master})


def test_a_token_is_not_shown() -> None:
    assert "secret" not in repr(FULL)


def test_a_variable_must_be_one() -> None:
    assert variable("token") == "ESPHA_TOKEN"
    with pytest.raises(KeyError):
        variable("tokens")

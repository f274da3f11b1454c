"""Command lines and connectors as configurations of adapters."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from espha.adapters.config import AdapterConfig
from espha.adapters.translation import Given, Translation, translate, translate_connector
from espha.adapters.types import adapters
from espha.connectors.commands import read_command, read_words
from espha_operator.api.adapters import InputAdapter

URL = "dfESP://engine.example:61001/p/cq/source"
CFG = """\
kafka { hostport = "broker:9092" }
sas { hotfailover=%s failovergroup="pair1" zookeeperhostport="keeper:2181" dateformat="%%Y" }
"""
tables = pytest.mark.skipif(
    "table" not in [one.name for one in adapters("sub")], reason="there is no adapter of tables"
)


def read(path: Path) -> str:
    if path.name == "pair.cfg":
        return CFG % "true"
    if path.name == "alone.cfg":
        return CFG % "false"
    if path.name == "row.proto":
        return "of Row"
    raise FileNotFoundError(2, "No such file or directory")


def of(command: str, database: str = "") -> Translation:
    return translate(read_command(command), read, Given(database=database))


def values(found: Translation) -> dict[str, Any]:
    """Return the configuration as a file has it."""
    assert not found.problems
    assert isinstance(found.config, AdapterConfig)
    told: dict[str, Any] = json.loads(found.config.text())
    return told


def test_properties_after_c() -> None:
    found = of(
        f'$HERE/bin/dfesp_fs_adapter -C type=pub,url="{URL}",fsname=/tmp/in.csv,fstype=csv,'
        "dateformat='%Y-%m-%d %H:%M:%S',header=2,growinginputfile=true,loglevel=trace,"
        "transport=kafka,transportconfigfile=/etc/alone.cfg"
    )
    told = values(found)
    assert told["window"] == "cq/source"
    assert told["file"] == {
        "path": "/tmp/in.csv",
        "growing": True,
        "headerLines": 2,
        "dateFormat": "%Y-%m-%d %H:%M:%S",
    }
    assert (found.project, found.bootstrap, found.failover) == ("p", "broker:9092", False)
    assert found.prefix == "engine.example_61001"
    assert "loglevel has no effect: logs have one level" in found.notes


def test_switches() -> None:
    found = of(
        f'[me@host ~]$ dfesp_fs_adapter -k pub -h "{URL}" -f /tmp/in.csv -t csv -l\n'
        'kafka -i -O -x 7 -F "normal" -A -Q -b 256 -d "%d-%m %H:%M:%S" > log.txt 2>&1 &'
    )
    assert values(found)["file"] == {
        "path": "/tmp/in.csv",
        "growing": True,
        "headerLines": 7,
        "opcode": False,
        "flags": False,
        "autogenField": False,
        "dateFormat": "%d-%m %H:%M:%S",
    }


def test_a_subscriber() -> None:
    found = of(
        f"dfesp_fs_adapter -k sub -h {URL}?snapshot=false -f out.csv -t csv -l kafka -j alone.cfg"
    )
    assert values(found)["file"] == {"path": "out.csv", "missing": "new"}
    header = f"dfesp_fs_adapter -C type=sub,url={URL},fsname=o.csv,header=full,snapshot=true"
    found = of(header)
    assert values(found)["file"] == {"path": "o.csv", "header": "full", "missing": "new"}
    assert any(note.startswith("snapshot has no effect") for note in found.notes)


def test_a_subscriber_whose_files_are_rotated() -> None:
    found = of(f"dfesp_fs_adapter -k sub -h {URL} -f o.json -t json -c 120 -s 1000000")
    assert values(found)["file"] == {
        "path": "o.json",
        "format": "json",
        "missing": "new",
        "rotateSeconds": 120,
        "rotateBytes": 1_000_000,
    }


def test_the_date_format_of_kafka_cfg_is_used_where_the_command_has_none() -> None:
    command = f"dfesp_fs_adapter -k pub -h {URL} -f in.csv -i -l kafka -j alone.cfg"
    assert values(of(command))["file"]["dateFormat"] == "%Y"
    assert values(of(f"{command} -d %H"))["file"]["dateFormat"] == "%H"


def test_a_failover_group_has_one_name_wherever_its_file_lies() -> None:
    def name(file: str, cfg: str) -> object:
        command = f"dfesp_fs_adapter -k pub -h {URL} -f {file} -i -l kafka -j {cfg}"
        return values(of(command))["name"]

    assert name("/a/in.csv", "pair.cfg") == name("/b/in.csv", "pair.cfg")
    assert name("/a/in.csv", "alone.cfg") != name("/b/in.csv", "alone.cfg")
    assert name("/a/in.csv", "alone.cfg") == name("/a/in.csv", "alone.cfg")


@pytest.mark.parametrize("file", ["input.csv", "kafka", "in-input-x.csv", "é.csv", "a" * 99])
def test_the_resource_takes_the_names_that_are_made(file: str) -> None:
    """Names of objects are made of them, and must not look like those of another deployment."""
    told = values(of(f"dfesp_fs_adapter -k pub -h {URL} -f {file}"))
    rule = InputAdapter.model_config["json_schema_extra"]
    assert isinstance(rule, dict)
    adapter = {**told, "file": {"path": "/data/x"}, "volume": {"claimName": "c"}}
    assert InputAdapter.model_validate(adapter).name == told["name"]
    assert "-" not in told["name"]


@pytest.mark.parametrize(
    ("rest", "problem"),
    [
        ("-f x -Z", "option '-Z' is not known; what it means can be given as -C name=value"),
        ("-f x -C colour=red", "property 'colour' is not known"),
        ("-f x -m 10", "maxevents cannot be followed: a file is published whole, and once"),
        ("-f x -t xml", "fstype xml is not read by the file adapter; use csv"),
        ("-f x -t xyz", "property 'fstype' is 'xyz'; use one of csv, json, xml"),
        ("-f x -x two", "property 'header' is 'two'; give a whole number"),
        ("-t csv", "property 'fsname' is missing: the name of the file"),
        ("-f host:5555 -x 1", "header is for files, not for sockets"),
        ("-f host:5555 -t xml", "fstype 'xml' cannot be followed; use csv or json"),
        ("-f host:99999", "there is no port of 65535 at most: give port, or fsname HOST:PORT"),
        ("-f @DIR@/x", "fsname: nothing says what @DIR@ is"),
        ("-f x -l solace", "transport 'solace' is not supported; use kafka"),
        ("-f x -l kafka -j /no.cfg", "transportconfigfile /no.cfg: No such file or directory"),
        ("-f x -k both", "type must be pub or sub"),
        ("-f x -h dfESP://h:1/p/q", "url is none: give one, dfESP://host:port/project/query/wind"),
        ("-f x -h dfESP://h:1/p/q/w,dfESP://g:1/p/q/w", "url names several: give one, dfESP://ho"),
        ("-f x -h dfESP://h:1/p/q/w?colour=red", "url: option 'colour' is not known"),
        ("-f x -h dfESP://h:1/p/q/w?collapse=true", "url: collapse=true cannot be followed"),
    ],
)
def test_what_is_not_understood_is_named(rest: str, problem: str) -> None:
    found = of(f"dfesp_fs_adapter -k pub -h {URL} {rest}")
    assert found.config is None
    assert found.problems[0].startswith(problem)


def test_everything_that_is_wrong_is_named_at_once() -> None:
    found = of("dfesp_fs_adapter -Z -Y -C colour=red")
    assert len(found.problems) == 4
    assert found.problems[:2] == (
        "option '-Z' is not known; what it means can be given as -C name=value",
        "option '-Y' is not known; what it means can be given as -C name=value",
    )


def test_values_that_are_not_understood_are_not_repeated() -> None:
    found = of(f"dfesp_fs_adapter -k pub -h {URL} -f x -Z hunter2 -C pwd=hunter2 -w=hunter2")
    assert len(found.problems) == 3
    assert "hunter2" not in str(found.problems + found.notes)


def test_another_program_has_no_substitute() -> None:
    (problem,) = of("dfesp_twitter_publisher -u x -m sample").problems
    assert problem.startswith("there is no substitute for 'dfesp_twitter_publisher' (there are ada")


def test_a_connector_of_a_model() -> None:
    properties = {"type": "pub", "fsname": "in.csv", "fstype": "csv", "header": "true"}
    one = translate_connector("fs", "pub", "cq/source", properties, "first")
    other = translate_connector("fs", "pub", "cq/source", properties, "second")
    assert values(one)["file"] == {"path": "in.csv", "headerLines": 1}
    assert values(one)["name"] != values(other)["name"]


CAS = (
    f'dfesp_cas_adapter -k sub -h "{URL}?snapshot=false" -H "cas:5570" -t detail -l "info" -L kafka'
)


@tables
def test_a_table_of_cas_becomes_one_of_a_database() -> None:
    told = values(of(CAS, "postgresql://me@db:5432/shop"))
    assert told["table"] == {
        "url": "postgresql://me@db:5432/shop",
        "table": "detail",
        "mode": "append",
    }
    assert values(of(CAS, "shop.sqlite"))["table"]["path"] == "shop.sqlite"
    (problem,) = of(CAS).problems
    assert problem.startswith("nothing says which database it is: give --database")


@tables
def test_a_table_of_a_database() -> None:
    connect = "DRIVER=PostgreSQL;Server=db;Port=5432;Database=shop;uid=me;pwd=hunter2"
    found = of(f"dfesp_db_adapter -C type=sub,url={URL},desttablename=t,connectstring='{connect}'")
    assert values(found)["table"] == {"url": "postgresql://me@db:5432/shop", "table": "t"}
    assert "the password of connectstring is not taken over: give it in PGPASSWORD" in found.notes
    assert "hunter2" not in str(found)


@tables
@pytest.mark.parametrize(
    "connect", ["DSN=d;uid=u;pwd=hunter2", "DRIVER=Oracle;Server=a;Database=b"]
)
def test_a_database_that_nobody_can_find_is_asked_for(connect: str) -> None:
    found = of(f"dfesp_db_adapter -k sub -h {URL} -C 'desttablename=t,connectstring={connect}'")
    assert found.problems[0].startswith("nothing says which database it is: give --database")
    assert "hunter2" not in str(found)


def test_tables_are_not_read() -> None:
    (problem,) = of(f"dfesp_db_adapter -k pub -h {URL} -C connectstring=DSN=x").problems
    assert problem.startswith("there is no substitute for 'dfesp_db_adapter'")


@pytest.mark.parametrize(
    ("command", "settings"),
    [
        ("dfesp_fs_adapter -f a.jsonl -t json -i -O -x 1", {"file": {
            "path": "a.jsonl", "format": "json", "growing": True, "headerLines": 1}}),
        ("dfesp_fs_adapter -f host:5555 -i -O -F normal", {"socket": {
            "connect": "host:5555", "format": {"opcode": False, "flags": False}}}),
        ("dfesp_fs_adapter -f :5555", {"socket": {"port": 5555}}),
        ("socket --port 5555 --fstype json --addcsvopcode true --ids true",
         {"socket": {"port": 5555, "format": {"type": "json"}, "ids": True}}),
        ("socket --host h --port 5555", {"socket": {"connect": "h:5555"}}),
        ("http --port 8090 --publishwithupsert true", {"http": {
            "port": 8090, "format": {"upsert": True}}}),
        ("kafka --kafkahostport k:9092 --kafkatopic t --kafkatype json --kafkainitialoffset largest"
         " --kafkapartition 0", {"kafka": {
             "servers": "k:9092", "topic": "t", "start": "last", "format": {"type": "json"}}}),
        ("kafka --kafkahostport k:9092 --kafkatopic t --protofile row.proto --protomsg Row",
         {"kafka": {"servers": "k:9092", "topic": "t", "format": {
             "type": "protobuf", "protobuf": {"definition": "of Row", "message": "Row"}}}}),
        ("mqtt --mqtthost h --mqtttopic a/# --mqttqos 2 --mqttmsgtype csv --mqttssl true "
         "--mqttclientid me --mqttacceptretainedmsg true --mqttkeepaliveinterval 10",
         {"mqtt": {"broker": "h:1883", "topic": "a/#", "tls": True, "clientId": "me",
                   "keepAliveS": 10, "retained": True}}),
    ],
)  # fmt: skip
def test_sources_by_their_properties(command: str, settings: dict[str, Any]) -> None:
    program, _, rest = command.partition(" ")
    told = values(of(f"{program} --type pub --url {URL} {rest}"))
    assert {name: told[name] for name in settings} == settings


@pytest.mark.parametrize(
    ("command", "settings"),
    [
        ("dfesp_fs_adapter -f host:5555 -t json", {"socket": {
            "connect": "host:5555", "format": {"type": "json"}}}),
        ("dfesp_fs_adapter -f :5555 -t csv", {"socket": {"port": 5555}}),
        ("dfesp_kafka_adapter -C kafkahostport=k:9092,kafkatopic=t,kafkatype=json", {"kafka": {
            "servers": "k:9092", "topic": "t", "format": {"type": "json"}}}),
        ("dfesp_mqtt_adapter -C mqtthost=h,mqtttopic=a,mqttmsgtype=csv,mqttuserid=me", {"mqtt": {
            "broker": "h:1883", "topic": "a"}}),
        ("dfesp_socket_adapter --host h --port 5", {"socket": {"connect": "h:5"}}),
        ("http --address https://h/rows", {"http": {"address": "https://h/rows"}}),
        ("kafka --kafkahostport k:9092 --kafkatopic t", {"kafka": {
            "servers": "k:9092", "topic": "t"}}),
        ("mqtt --mqtthost h --mqttport 8883 --mqtttopic a --mqttqos 2 --mqttretainmsg true",
         {"mqtt": {"broker": "h:8883", "topic": "a", "qos": 2, "retain": True}}),
        ("table --desttablename t", {"table": {"path": "x.sqlite", "table": "t"}}),
    ],
)  # fmt: skip
def test_targets_by_their_properties(command: str, settings: dict[str, Any]) -> None:
    program, _, rest = command.partition(" ")
    told = values(of(f"{program} --type sub --url {URL} {rest}", "x.sqlite"))
    assert {name: told[name] for name in settings} == settings


@pytest.mark.parametrize(
    ("command", "problem"),
    [
        ("socket --type pub", "there is no port of 65535 at most"),
        ("dfesp_kafka_adapter -k pub", "property 'kafkahostport' is missing"),
        (
            "dfesp_url_adapter -k pub",
            "the command line of 'dfesp_url_adapter' is not read",
        ),
        (
            "dfesp_fs_adapter -k pub -f /dev/stdin",
            "/dev/stdin cannot be read on from",
        ),
        ("http --type pub", "property 'port' is missing"),
        ("http --type sub --port 80", "property 'port' is not known"),
        ("kafka --type pub --kafkatopic t", "property 'kafkahostport' is missing"),
        ("kafka --type pub --kafkapartition 3", "kafkapartition cannot be followed"),
        ("kafka --type pub --kafkatype binary", "kafkatype 'binary' cannot be followed"),
        ("kafka --type pub --kafkainitialoffset 7", "kafkainitialoffset has to be smallest or"),
        ("kafka --type pub --kafkaglobalconfig sasl.username=x", "kafkaglobalconfig: configure"),
        ("kafka --type pub --protomsg Row", "property 'protofile' is missing"),
        ("mqtt --type pub --mqttqos 3", "mqttqos has to be 0, 1 or 2"),
        ("mqtt --type pub --mqttport x", "property 'mqttport' is 'x'; give a whole number"),
        ("mqtt --type sub --csvincludeschema once", "csvincludeschema cannot be followed"),
        ("mqtt --type sub --rmretdel true", "rmretdel cannot be followed"),
        ("mqtt --type pub --maxevents 5", "maxevents cannot be followed"),
    ],
)
def test_what_a_stream_cannot_be_is_named(command: str, problem: str) -> None:
    found = of(f"{command} --url {URL}")
    assert found.config is None
    assert [one for one in found.problems if one.startswith(problem)]


def test_passwords_of_a_broker_are_not_taken_over() -> None:
    found = of(
        f"mqtt --type pub --url {URL} --mqtthost h --mqtttopic a --mqttuserid me "
        "--mqttpassword hunter2"
    )
    said = "mqttpassword has no effect: user and password are given in MQTT_USERNAME and MQTT_PASS"
    assert any(note.startswith(said) for note in found.notes)
    assert "hunter2" not in str(found)


def test_two_topics_have_two_names() -> None:
    def name(topic: str) -> object:
        return values(of(f"mqtt --type pub --url {URL} --mqtthost h --mqtttopic {topic}"))["name"]

    assert name("a") == name("a")
    assert name("a") != name("b")


def test_a_timer_of_a_model() -> None:
    properties = {"interval": "2", "unit": "minutes", "basetime": "01/02/2026 03:04:05",
                  "timeformat": "%d/%m/%Y %H:%M:%S", "maxevents": "7"}  # fmt: skip
    found = translate_connector("timer", "pub", "cq/source", properties, "tick")
    assert values(found)["timer"] == {
        "interval": 2,
        "unit": "minute",
        "base": "2026-02-01 03:04:05",
        "label": "tick",
        "maxEvents": 7,
    }


WORDS = st.one_of(
    st.text(max_size=8),
    st.sampled_from(
        ["-k", "pub", "sub", "-h", URL, "-f", "x", "-C", "header=1,rate=2", "--type", "-x", "-i",
         "-l", "kafka", "-j", "pair.cfg", "--fsname=y", "fsname=:1", "dateformat=%Q",
         "--port", "5555", "--mqttport", "--maxevents"]
    ),
)  # fmt: skip


NAMES = st.sampled_from(
    ["fsname", "mqtthost", "mqttport", "mqtttopic", "mqttqos", "interval", "unit", "basetime",
     "protofile", "protomsg", "maxevents", "dateformat", "csvfielddelimiter"]
)  # fmt: skip


@given(st.lists(WORDS, max_size=12))
def test_any_words_become_a_configuration_or_problems(words: list[str]) -> None:
    for program in ("dfesp_fs_adapter", "socket", "http", "kafka", "mqtt", "table"):
        found = translate(read_words(program, words), read)
        assert (found.config is None) == bool(found.problems)


@given(st.sampled_from(["fs", "mqtt", "timer"]), st.dictionaries(NAMES, st.text(max_size=8)))
def test_any_properties_become_a_configuration_or_problems(
    class_: str, properties: dict[str, str]
) -> None:
    found = translate_connector(class_, "pub", "cq/source", properties, "x")
    assert (found.config is None) == bool(found.problems)


@given(st.text())
def test_any_command_is_read_or_refused(text: str) -> None:
    try:
        line = read_command(text)
    except ValueError:
        return
    found = translate(line, read)
    assert (found.config is None) == bool(found.problems)

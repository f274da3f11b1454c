"""`kafka.cfg` in its three forms."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from espha.connectors.kafka_cfg import KafkaCfg, read_kafka_cfg

CPP = """\
kafka
{
hostport = "broker-0:9092,broker-1:9092"
partition = "0"
#groupid = "mine"
}
sas
{
hotfailover=true
zookeeperhostport="keeper:2181"
failovergroup="pair1"
dateformat="%Y-%m-%d %H:%M:%S"
}
"""
JAVA = """\
{
kafka =
{
hostport = "broker-0:9092,broker-1:9092"
partition = "0"
}
sas =
{
hotfailover = true
zookeeperhostport = keeper:2181
failovergroup = "pair1"
protobuf = false
json = false
dateformat = "%Y-%m-%d %H:%M:%S"
}
}
"""
PROPERTIES = """\
# of clients
bootstrap.servers=broker-0:9092,broker-1:9092
kafka.partition = 0
sas.hotfailover=true
zookeeper.connect=keeper:2181
sas.failovergroup=pair1
sas.dateformat=%Y-%m-%d %H:%M:%S
"""
READ = KafkaCfg(
    bootstrap="broker-0:9092,broker-1:9092",
    zookeeper="keeper:2181",
    failover=True,
    group="pair1",
    date_format="%Y-%m-%d %H:%M:%S",
)


@pytest.mark.parametrize("text", [CPP, JAVA, PROPERTIES, CPP.replace("\n", "\r\n"), "\ufeff" + CPP])
def test_the_forms_say_the_same(text: str) -> None:
    assert read_kafka_cfg(text) == READ


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("kafka { partition = 2 }", "line 1: kafka: partition: topics have one partition; give 0"),
        ("kafka { partition = x }", "line 1: kafka: partition: give a whole number"),
        ("sas { hotfailover = maybe }", "line 1: sas: hotfailover: give true or false"),
        ("sas { protobuf = true }", "line 1: sas: protobuf: records are CSV or JSON"),
        ("sas { json = true }", "line 1: sas: json: the model says the format"),
    ],
)
def test_what_cannot_be_followed_is_named_with_its_line(text: str, problem: str) -> None:
    (found,) = read_kafka_cfg(text).problems
    assert found.startswith(problem)


@pytest.mark.parametrize(
    ("text", "note"),
    [
        (
            "kafka {\n hostprt = a:1\n}",
            "line 2: kafka: hostprt is not known, and not used (is it h",
        ),
        (
            "sas { hotfailver = true }",
            "line 1: sas: hotfailver is not known, and not used (is it h",
        ),
        ("colour = red", "line 1: colour is not known, and not used (there are: kafka.globalco"),
        (
            "kafka { colour = red }",
            "line 1: kafka: colour is not known, and not used (there are: g",
        ),
        ("other { a = 1 }", "line 1: other: a is not known, and not used (there are: kafka.global"),
    ],
)
def test_what_is_not_known_is_named_with_its_line(text: str, note: str) -> None:
    (found,) = read_kafka_cfg(text).notes
    assert found.startswith(note)


def test_what_has_no_effect_is_named() -> None:
    text = 'kafka { globalconfig="enable.sparse.connections=false" metatopic="m" groupid="g" }'
    found = read_kafka_cfg(text)
    assert not found.problems
    assert [note.partition(" has no effect: ")[0] for note in found.notes] == [
        "line 1: kafka: globalconfig",
        "line 1: kafka: metatopic",
        "line 1: kafka: groupid",
    ]


def test_a_password_is_never_repeated() -> None:
    text = 'kafka {\nglobalconfig = "sasl.password=hunter2;ssl.ca.location=x"\npasword=hunter2\n}'
    found = read_kafka_cfg(text)
    assert found.problems[0] == (
        "line 2: kafka: globalconfig: sasl.password, ssl.ca.location: connections to Kafka are "
        "plain"
    )
    assert "hunter2" not in str(found)


def test_a_section_that_is_not_closed_is_told() -> None:
    found = read_kafka_cfg('kafka\n{\nhostport = "a:1"\n}\nsas\n{\n')
    assert found.bootstrap == "a:1"
    assert found.notes == ("line 5: section 'sas' is not closed; what stands in it is taken",)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("kafka {\n hostport = a:1\nsas {\n}\n}", "line 3: 'sas' stands within 'kafka'"),
        ("kafka", "line 1: 'kafka' has no value"),
        ("kafka { hostport }", "line 1: 'hostport' has no value"),
        ("kafka { hostport = }", "line 1: 'hostport' has no value"),
        ('kafka {\n hostport = "a:1\n}', "line 2: there is a quote that is not closed"),
        ("}", "line 1: '}' is not expected here"),
        ("kafka { a = 1 }\n= b", "line 2: '=' is not expected here"),
    ],
)
def test_what_is_no_kafka_cfg_is_refused_with_its_line(text: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        read_kafka_cfg(text)


PIECES = ["kafka", "sas", "{", "}", "=", '"', "hostport", "hotfailover", "a:1", "true", "\n", " "]
TEXTS = st.one_of(st.text(), st.lists(st.sampled_from(PIECES), max_size=30).map("".join))


@given(TEXTS)
def test_any_text_is_read_or_refused_with_its_line(text: str) -> None:
    try:
        read_kafka_cfg(text)
    except ValueError as error:
        assert str(error).startswith("line ")

"""Connectors, their groups, and tokens: what is read, warned of, refused."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from espha.cli import app
from espha.connectors.commands import adapter_properties
from espha.connectors.files import FileSource, FileTarget, file_source, file_target
from espha.connectors.timers import timer
from espha.model import ModelError, Project, model_digest
from espha.reader import read_project
from espha.records.layout import Layout
from support.models import source, xml

SCHEMA = "id*:int64,x:int64"


def connector(class_: str, attributes: str = 'name="c"', **properties: str) -> str:
    listed = "".join(
        f'<property name="{name}">{value}</property>' for name, value in properties.items()
    )
    return (
        f'<connectors><connector class="{class_}" {attributes}><properties>{listed}</properties>'
        "</connector></connectors>"
    )


def read(class_: str, attributes: str = 'name="c"', **properties: str) -> Project:
    return read_project(xml(source(SCHEMA, body=connector(class_, attributes, **properties))))


def problems(text: str) -> list[str]:
    with pytest.raises(ModelError) as caught:
        read_project(text)
    return [str(problem) for problem in caught.value.problems]


def warnings(project: Project) -> list[str]:
    return [warning.reason for warning in project.warnings]


@pytest.mark.parametrize(
    ("attributes", "properties", "expected"),
    [
        ("", {"type": "sub"}, "sub"),
        ("type='publish'", {}, "pub"),
        ("type='subscriber'", {}, "sub"),
        ("", {}, "pub"),
    ],
)
def test_which_way_a_connector_goes(
    attributes: str, properties: dict[str, str], expected: str
) -> None:
    (found,) = read("url", attributes, **properties).windows["q/in"].connectors
    assert found.type == expected


@pytest.mark.parametrize(
    ("attributes", "properties", "active"),
    [
        ("", {}, True),
        ('active="false"', {}, False),
        ("", {"active": "false"}, False),
        ('active="true"', {}, True),
    ],
)
def test_whether_it_is_active(attributes: str, properties: dict[str, str], active: bool) -> None:
    window = read("fs", attributes, fsname="x", **properties).windows["q/in"]
    assert bool(window.connectors) is active


def test_what_is_not_active_is_not_looked_at() -> None:
    project = read("", 'active="false"', type="both", fsname="@NOBODY@")
    assert not project.windows["q/in"].connectors


@pytest.mark.parametrize(
    ("class_", "properties", "warning"),
    [
        ("mqtt", {"mqtthost": "h"}, "connector class 'mqtt' is not run; use an adapter"),
        ("fs", {"fsname": "x", "shade": "1"}, "property 'shade' is not used"),
        ("fs", {"fsname": "x", "fstype": "hdat"}, "fstype 'hdat' is not run; use csv, json, xml"),
        ("fs", {"fsname": "@D@/x"}, "token @D@ has no value"),
        ("adapter", {"command": "dfesp_db_adapter -C x=1"}, "no substitute for 'dfesp_db_adapter'"),
        (
            "kafka",
            {"kafkatype": "avro"},
            "kafkatype 'avro' cannot be deployed: topics of a "
            "deployment have csv or json; use one of them, and for messages in avro an adapter",
        ),
        ("kafka", {"kafkatype": "xml"}, "kafkatype 'xml' cannot be deployed: use csv or json"),
        ("kafka", {"kafkatype": "binary"}, "so records of this topic are CSV: write csv, or json"),
        ("kafka", {"kafkapartition": "3"}, "kafkapartition is taken as 0"),
    ],
)
def test_what_a_model_can_do_without_is_a_warning(
    class_: str, properties: dict[str, str], warning: str
) -> None:
    (found,) = warnings(read(class_, **properties))
    assert warning in found


@pytest.mark.parametrize(
    ("class_", "properties", "reason"),
    [
        ("", {}, "a connector needs a class"),
        ("fs", {"type": "both"}, "property 'type' is 'both'; use pub or sub"),
        ("fs", {}, "property 'fsname' is missing"),
        ("fs", {"fsname": "x", "rate": "fast"}, "property 'rate' is 'fast'; give a whole number"),
        ("fs", {"fsname": "x", "addcsvopcode": "2"}, "property 'addcsvopcode' is '2'; use one of"),
        ("fs", {"fsname": "x", "csvfielddelimiter": "ab"}, "'ab' is not a delimiter"),
        ("fs", {"type": "sub", "fsname": "x", "header": "1"}, "use one of false, true, full"),
        ("timer", {"type": "sub"}, "a timer only publishes"),
        ("timer", {}, "property 'interval' is ''; give a whole number from 1"),
        ("timer", {"interval": "1", "unit": "moon"}, "property 'unit' is 'moon'; use millisecond"),
        ("timer", {"interval": "1300", "unit": "year"}, "give a whole number from 1 to 1200"),
        ("timer", {"interval": "1", "basetime": "noon"}, "'basetime' is 'noon', not written as %Y"),
    ],
)
def test_what_cannot_be_meant_is_refused(
    class_: str, properties: dict[str, str], reason: str
) -> None:
    (found,) = problems(xml(source(SCHEMA, body=connector(class_, **properties))))
    assert reason in found
    assert found.startswith('line 3: <connector name="c">: ')


def test_all_properties_of_a_file_that_is_read() -> None:
    assert file_source({"fsname": "x"}) == FileSource(file="x")
    assert file_source(
        {
            "fsname": " x ", "fstype": "JSON", "addcsvopcode": "true",
            "addcsvflags": "partialupdate",
            "publishwithupsert": "true", "noautogenfield": "true", "header": "true",
            "dateformat": "%H", "csvfielddelimiter": "\\t", "stripnullsfromcsv": "true",
            "blocksize": "64", "rate": "10", "repeatcount": "2", "maxevents": "0",
            "growinginputfile": "true",
        }
    ) == FileSource(
        file="x",
        layout=Layout(
            format="json", header_lines=1, opcode=False, flags=False, upsert=True, partial=True,
            autogen_field=False, date_format="%H", delimiter="\t", strip_nulls=True,
        ),
        block=64, rate=10, repeat=2, most=None, growing=True,
    )  # fmt: skip


def test_all_properties_of_a_file_that_is_written() -> None:
    assert file_target({"fsname": "x", "header": "false"}) == FileTarget(file="x")
    assert file_target(
        {"fsname": "x", "fstype": "json", "header": "full", "snapshot": "true", "collapse": "true",
         "rmretdel": "true", "dateformat": "%H", "doubleprecision": "2"}
    ) == FileTarget(
        file="x", format="json", header="full", snapshot=True, collapse=True,
        drop_retention_deletes=True, date_format="%H", precision=2,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        (
            r"$DFESP_HOME/bin/dfesp_fs_adapter -C type=pub,fsname='a,b.csv',dateformat=%H\,%M",
            {"type": "pub", "fsname": "a,b.csv", "dateformat": "%H,%M"},
        ),
        (
            'dfesp_fs_adapter -k sub -h "dfESP://h:1/p/q/w" -f out.csv -t csv',
            {"type": "sub", "url": "dfESP://h:1/p/q/w", "fsname": "out.csv", "fstype": "csv"},
        ),
    ],
)
def test_the_command_of_a_file_adapter(command: str, expected: dict[str, str]) -> None:
    assert adapter_properties(command) == expected


@pytest.mark.parametrize(
    ("command", "reason"),
    [
        ("", "property 'command' is missing"),
        ("dfesp_fs_adapter -f 'x", "a quote that is not closed"),
        ("dfesp_fs_adapter -Z x", "option '-Z' is not known"),
        ("dfesp_fs_adapter -f", "option -f has no value"),
        ("dfesp_fs_adapter -C x", "-C: its value does not begin with name="),
        ("rm -rf /", "there is no substitute for 'rm'"),
    ],
)
def test_another_command_is_not_run(command: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        adapter_properties(command)


@pytest.mark.parametrize(
    ("properties", "now", "ticks"),
    [
        ({"interval": "10"}, 1_500, [1_500, 11_500, 21_500]),
        ({"interval": "1", "unit": "minute", "basetime": "1970-01-01 00:00:30"}, 90_000,
         [90_000, 150_000, 210_000]),
        ({"interval": "1", "unit": "minutes", "basetime": "1970-01-01 00:00:30"}, 90_001,
         [150_000, 210_000]),
        ({"interval": "1", "unit": "hour", "basetime": "02.01.1970", "timeformat": "%d.%m.%Y"}, 5,
         [86_400_000, 90_000_000]),
        ({"interval": "1", "unit": "month", "basetime": "1970-01-31 00:00:00"}, 0,
         [30 * 86_400_000, 58 * 86_400_000, 89 * 86_400_000]),
        ({"interval": "1", "unit": "year", "basetime": "1968-02-29 00:00:00"}, 0,
         [58 * 86_400_000, 423 * 86_400_000]),
    ],
)  # fmt: skip
def test_when_a_timer_ticks(properties: dict[str, str], now: int, ticks: list[int]) -> None:
    found = timer(properties)
    first = found.first(now)
    assert [found.tick(first + place, now) for place in range(len(ticks))] == ticks


GROUPS = (
    "<project-connectors><connector-groups>"
    '<connector-group name="a"><connector-entry connector="q/in/c" state="finished"/>'
    "</connector-group><connector-group name='b'/><connector-group name='c'/>"
    "</connector-groups>{}</project-connectors>"
)


def in_groups(edges: str = "", groups: str = GROUPS) -> str:
    text = xml(source(SCHEMA, body=connector("fs", fsname="x")))
    return text.replace("</project>", f"{groups.format(edges)}</project>")


def test_groups_wait_for_others_by_edges_or_by_their_order() -> None:
    plain = read_project(in_groups()).groups
    assert [(group.name, group.after) for group in plain] == [
        ("a", ()),
        ("b", ("a",)),
        ("c", ("b",)),
    ]
    assert plain[0].entries == (("q/in/c", "finished"),)
    edges = '<edges><edge source="b c" target="a"/></edges>'
    assert [group.after for group in read_project(in_groups(edges)).groups] == [("b", "c"), (), ()]


@pytest.mark.parametrize(
    ("edges", "old", "new", "reason"),
    [
        ("<edges><edge source='x' target='a'/></edges>", "", "", "no connector group 'x'"),
        ("<edges><edge source='a b' target='b a'/></edges>", "", "", "groups wait for each other"),
        ("", "q/in/c", "q/in/d", "there is no connector 'q/in/d'"),
        ("", "finished", "done", "state 'done' is not known; use started, running"),
        ("", "name='c'", "name='b'", "two connector groups are called 'b'"),
    ],
)
def test_groups_that_cannot_start_are_refused(edges: str, old: str, new: str, reason: str) -> None:
    assert any(reason in one for one in problems(in_groups(edges, GROUPS.replace(old or "^", new))))


FILTER = '<window-filter name="out"><expression>{}</expression></window-filter>'
EDGE = '<edge source="in" target="out"/>'


def expression(before: str, text: str, **tokens: str) -> str:
    model = xml(source(SCHEMA) + FILTER.format(text), EDGE, before=before)
    plain = xml(source(SCHEMA) + FILTER.format("x > 5"), EDGE)
    assert model_digest(read_project(plain)) == model_digest(read_project(model, tokens=tokens))
    return "same"


@pytest.mark.parametrize(
    "before",
    [
        '<properties><property name="L">5</property></properties>',
        '<properties><property name="L" value="5"/></properties>',
        '<properties><properties><property name="@L@">5</property></properties></properties>',
        '<property name="L">5</property>',
        '<properties><property name="L">@M@</property><property name="M">5</property></properties>',
    ],
)
def test_where_the_value_of_a_token_may_stand(before: str) -> None:
    assert expression(before, "x > @L@") == "same"


def test_values_from_outside_win() -> None:
    before = '<properties><property name="L">4</property></properties>'
    assert expression(before, "x > @L@", L="5") == "same"
    assert expression("", "@F@ > @L@", F="@G@", G="x", L="5") == "same"


def test_an_engine_around_the_project_may_have_properties() -> None:
    body = xml(source(SCHEMA) + FILTER.format("x > @L@"), EDGE)
    properties = '<properties><property name="L">5</property></properties>'
    project = read_project(f"<engine port='1'>{properties}<projects>{body}</projects></engine>")
    assert project.warnings == ()


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        ({"A": "@B@", "B": "@A@"}, "properties refer to each other more than 10 deep"),
        ({"A": "@B@" * 1000, "B": "@C@" * 1000, "C": "x" * 1000}, "longer than 128 KiB"),
        ({"A": "x" * 100_000}, "longer than 2 MiB"),
    ],
)
def test_tokens_cannot_blow_up_a_model(values: dict[str, str], reason: str) -> None:
    listed = "".join(f'<property name="{n}">{v}</property>' for n, v in values.items())
    before = f"<properties>{listed}</properties>"
    assert any(reason in one for one in problems(xml(source("@A@" * 100), before=before)))


def test_check_goes_on_without_values(tmp_path: Path) -> None:
    """A token without a value is a warning; `run` refuses it."""
    model = tmp_path / "m.xml"
    window = source(SCHEMA, body=connector("fs", fsname="@ESP_PROJECT_HOME@/x", rate="@R@"))
    model.write_text(xml(window + FILTER.format("x > @L@"), EDGE), encoding="utf-8")
    runner = CliRunner()
    found = runner.invoke(app, ["check", str(model)])
    assert found.exit_code == 0
    assert [line.split()[0] for line in found.stdout.splitlines()] == ["q/in", "q/out"]
    assert "token @L@ has no value; checked as if it were 1" in found.stderr
    assert "token @R@ has no value" in found.stderr
    ran = runner.invoke(app, ["run", str(model), "--no-connectors", "--engine", "kernel"])
    assert ran.exit_code == 2
    assert "token @L@ has no value; give it as a project property or with --set" in ran.stderr
    arguments = ["run", str(model), "--no-connectors", "--engine", "kernel", "--set", "L=1"]
    assert runner.invoke(app, arguments).exit_code == 0
    assert runner.invoke(app, ["check", str(model), "--set", "L"]).exit_code == 2

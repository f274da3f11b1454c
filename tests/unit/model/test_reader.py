"""Reading models: what they become, and every refusal with its line."""

import pickle
import random
import re

import pytest

from espha.connectors.topics import topic_plan
from espha.kernel import Kernel
from espha.model import Field, ModelError, model_digest
from espha.model.events import Event
from espha.reader import read_project
from support.models import SAMPLE, SUB, TRADES, source, xml

SCHEMA = "id*:int64,x:int64,s:string"
IN = source(SCHEMA)
EDGE = '<edge source="in" target="out"/>'
COPY = '<window-copy name="out"/>'


def problems(text: str | bytes) -> list[str]:
    with pytest.raises(ModelError) as caught:
        read_project(text)
    return [str(problem) for problem in caught.value.problems]


def test_the_sample_model() -> None:
    project = read_project(SAMPLE)
    assert project.name == "HA_Project"
    assert list(project.windows) == ["cq/memory", "cq/sum20", "cq/outbound"]
    memory, sum20, outbound = project.windows.values()
    assert [memory.type, sum20.type, outbound.type] == ["source", "calculate", "functional"]
    assert memory.fields[0] == Field("index_esp", "int64", True)
    assert sum20.fields[-1] == Field("sum20", "double", False)
    assert not memory.stateful
    connector = outbound.kafka("sub")
    assert connector is not None
    assert connector.properties["kafkatopic"] == "HAtopic1_31415.HA_Project.cq.outbound.O"
    assert [(edge.source, edge.target) for edge in project.edges] == [
        ("cq/memory", "cq/sum20"),
        ("cq/sum20", "cq/outbound"),
    ]
    assert project.warnings == ()


def test_a_project_survives_the_way_to_a_worker() -> None:
    project = read_project(TRADES)
    assert pickle.loads(pickle.dumps(project)) == project  # noqa: S301 - our own bytes


def test_a_project_may_stand_in_an_engine() -> None:
    body = xml(IN)
    assert read_project(f"<engine><projects>{body}</projects></engine>") == read_project(body)
    assert (
        "needs one <project>, has 2 (p, p); give each a file of its own"
        in problems(f"<engine><projects>{body * 2}</projects></engine>")[0]
    )
    assert problems("<model/>") == ["line 1: <model>: needs one <project>, has 0"]


def test_both_spellings_of_a_schema_are_the_same() -> None:
    long = (
        '<window-source name="in"><schema><fields><field name="id" type="int64" key="true"/>'
        '<field name="x" type="int64"/><field name="s" type="string"/></fields></schema>'
        "</window-source>"
    )
    assert model_digest(read_project(xml(IN))) == model_digest(read_project(xml(long)))


def test_edges_are_lists() -> None:
    windows = IN + '<window-copy name="a"/><window-copy name="b"/>'
    assert read_project(xml(windows, '<edge source="in" target="a  b"/>')) == read_project(
        xml(windows, '<edge source="in" target="a,b"/>')
    )
    project = read_project(xml(windows, '<edge source="in" target="a  b"/>'))
    assert [edge.target for edge in project.edges_from("q/in")] == ["q/a", "q/b"]


def test_an_index_is_inherited() -> None:
    windows = source(SCHEMA) + '<window-copy name="out" index="pi_HASH"/>'
    project = read_project(xml(windows, EDGE))
    assert [window.index for window in project.windows.values()] == ["pi_EMPTY", "pi_HASH"]


def test_tokens_come_from_the_project_and_from_outside() -> None:
    before = '<properties><property name="LIMIT">5</property></properties>'
    window = '<window-filter name="out"><expression>x > @LIMIT@</expression></window-filter>'
    text = xml(IN + window, EDGE, before=before)
    assert read_project(text).windows["q/out"].expression == "(x > 5)"  # type: ignore[attr-defined]
    given = read_project(text, tokens={"LIMIT": "7"}).windows["q/out"]
    assert given.expression == "(x > 7)"  # type: ignore[attr-defined]
    assert "token @LIMIT@ has no value" in problems(xml(IN + window, EDGE))[0]


def test_what_is_not_used_is_a_warning() -> None:
    project = read_project(
        xml(source(SCHEMA, 'shade="blue"')).replace("<project", "<project on='1'")
    )
    assert [str(warning) for warning in project.warnings] == [
        "line 1: <project name=\"p\">: attribute 'on' is not used",
        "line 3: <window-source name=\"in\">: attribute 'shade' is not used",
    ]


def warnings(text: str) -> list[str]:
    return [str(warning) for warning in read_project(text).warnings]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (xml(COPY), 'line 1: <project name="p">: the project has no source window'),
        (xml(IN + COPY), 'line 4: <window-copy name="out">: no edge leads into this window'),
        (xml(IN + COPY, EDGE + EDGE), "the edge from q/in to q/out occurs twice"),
        (xml(IN + COPY, EDGE.replace("/>", ' slot="1"/>')), "takes slot 1 of it, but it has no"),
        (
            xml(IN + COPY, EDGE.replace("/>", ' role="model"/>')),
            "role 'model' of the edge into q/out is not one of: data",
        ),
    ],
)
def test_what_changes_no_result_is_a_warning(text: str, expected: str) -> None:
    found = warnings(text)
    assert any(expected in warning for warning in found), found


def test_windows_that_no_event_reaches_are_idle() -> None:
    windows = (
        IN + COPY + '<window-compute name="c"><schema-string>id*:int64,n:int64</schema-string>'
        "<output/></window-compute>" + FILTER.replace('"out"', '"f"').format("n > 1")
    )
    edges = '<edge source="c" target="f"/>'
    project = read_project(xml(windows, edges))
    assert {path: type(window).__name__ for path, window in project.windows.items()} == {
        "q/in": "SourceWindow",
        "q/out": "IdleWindow",
        "q/c": "IdleWindow",
        "q/f": "FilterWindow",
    }
    kernel = Kernel(project, project.windows)
    event = Event("I", "N", (1, 2, "a"))
    assert kernel.publish("q/in", event, 1) == [("q/in", event)]


def test_what_has_no_name_gets_one() -> None:
    bare = xml(IN).replace('name="p"', "").replace('name="q"', "")
    project = read_project(bare)
    assert (project.name, list(project.windows)) == ("project", ["contquery/in"])
    assert read_project(bare, unnamed="fleet").name == "fleet"


def test_a_schema_can_be_that_of_another_window() -> None:
    window = '<window-functional name="out">{}</window-functional>'
    copied = read_project(xml(IN + window.format('<schema copy="in"/>'), EDGE))
    assert copied.windows["q/out"].fields == copied.windows["q/in"].fields
    own = "<fields><field name='id' type='int64' key='true'/></fields>"
    given = read_project(xml(IN + window.format(f'<schema copy="in">{own}</schema>'), EDGE))
    assert given.windows["q/out"].fields == (Field("id", "int64", True),)


def test_windows_behind_a_refused_one_are_checked_with_its_schema() -> None:
    windows = IN + '<window-train name="t"><schema-string>id*:int64,y:double</schema-string>'
    windows += "</window-train>" + FILTER.format("y > 1 and z > 2")
    found = problems(xml(windows, '<edge source="in" target="t"/><edge source="t" target="out"/>'))
    assert ["not supported" in found[0], "there is no field 'z'" in found[1]] == [True, True]
    assert len(found) == 2


def test_other_parts_of_a_project_or_query_are_a_warning() -> None:
    text = xml(IN, before="<mas-things/>").replace("<windows>", "<more/><windows>", 1)
    assert warnings(text) == [
        "line 1: <mas-things>: not used in <project>",
        "line 2: <more>: not used in <contquery>",
    ]


def test_an_index_may_be_in_small_letters() -> None:
    assert read_project(xml(IN, index="pi_hash")).windows["q/in"].index == "pi_HASH"


def test_metadata_is_ignored() -> None:
    body = "<metadata><meta id='layout'>@NOBODY@</meta></metadata>"
    plain, with_meta = xml(source(SCHEMA)), xml(source(SCHEMA, body=body), before=body)
    assert model_digest(read_project(plain)) == model_digest(read_project(with_meta))


FILTER = '<window-filter name="out"><expression>{}</expression></window-filter>'
COMPUTE = (
    '<window-compute name="out"><schema-string>{}</schema-string>'
    "<output>{}</output></window-compute>"
)
FUNCTIONAL = '<window-functional name="out"><schema-string>{}</schema-string>{}</window-functional>'
KAFKA = (
    "<connectors><connector class='kafka' name='c'><properties>"
    "<property name='type'>{}</property>{}</properties></connector></connectors>"
)


def with_kafka(properties: str) -> str:
    return xml(source(SCHEMA, body=KAFKA.format("sub", properties)))


def calculate(
    schema: str = "id*:int64,x:int64,total:double",
    length: str = "5",
    input_: str = "x",
    outputs: str = '<property name="sumOut">total</property>',
    algorithm: str = "Summary",
) -> str:
    return (
        f'<window-calculate name="out" algorithm="{algorithm}">'
        f"<schema-string>{schema}</schema-string>"
        f'<parameters><properties><property name="windowLength">{length}</property></properties>'
        f'</parameters><input-map><properties><property name="input">{input_}</property>'
        f"</properties></input-map><output-map><properties>{outputs}</properties></output-map>"
        "</window-calculate>"
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "line 1: <xml>: not well-formed XML"),
        ("<project>\n<a></b></project>", "line 2: <xml>: not well-formed XML"),
        (b"\xff\xfe\x00", "not well-formed XML"),
        ("\ud800", "line 1: <xml>: not text"),
        ("<project>" + " " * 2_100_000 + "</project>", "at most 2097152 are read"),
        ('<!DOCTYPE project [<!ENTITY a "x">]><project name="p"/>', "DOCTYPE is not accepted"),
        ('<!DOCTYPE project SYSTEM "file:///etc/passwd"><project/>', "DOCTYPE is not accepted"),
        (xml(IN + "<window-none name='out'/>", EDGE), 'line 4: <window-none name="out">: this win'),
        (xml(IN + "<window-funktional name='out'/>", EDGE), "do you mean 'functional'?"),
        (xml(IN + COPY, EDGE.replace("out", "our")), "no window 'our' in query 'q'; do you mean"),
        (
            xml(IN + "<window-lua name='out'><schema copy='inn'/></window-lua>", EDGE),
            "copy: there is no window 'inn'; do you mean 'in'?",
        ),
        (
            xml(IN + COPY + "<window-lua name='l'><schema copy='out'/></window-lua>", EDGE),
            "copy: window 'out' has no <schema>; write the fields here",
        ),
        (xml(IN + "<window-train name='out'/>", EDGE), "models are not trained"),
        (xml(IN + "<window-procedural name='out'/>", EDGE), "needs a <mas-map>"),
        (xml(IN, '<edge source="in" target="x"/>'), "there is no window 'x' in query 'q'"),
        (xml(IN, "<edge source='in'/>"), "line 6: <edge>: needs a source and a target"),
        (xml(IN, "<edge source='in' target='in'/>"), "q/in is a source window; no edge leads into"),
        (xml(IN + COPY, EDGE.replace("/>", ' slot="x"/>')), "slot 'x' is not a whole number"),
        (xml(IN + IN), "another window of this query has the same name"),
        (xml(source(SCHEMA, name="a/b")), "'a/b' is not a name: use 1 to 200 characters, no slash"),
        (xml(IN, index="pi_TREE"), "index 'pi_TREE' is not one of:"),
        (xml(source("id:int64")), "the schema has no key field"),
        (xml(source("id*:int65")), "type 'int65' of field 'id' is not one of: array"),
        (xml(source("id*:array(string)")), "type 'array(string)'"),
        (xml(source("id*:int64,id:int64")), "field 'id' occurs twice"),
        (xml(source("id*")), "'id*' is not name:type"),
        (xml(source("a b*:int64")), "'a b' is not a field name"),
        (xml('<window-source name="in"/>'), "needs one <schema> or one <schema-string>"),
        (xml(source(SCHEMA, 'autogen-key="true"')), 'autogen-key needs insert-only="true"'),
        (
            xml(source("a*:int32", 'autogen-key="true" insert-only="true"')),
            "exactly one key field, of type int64 or string",
        ),
        (
            xml(source("a*:int64,b*:int64", 'autogen-key="true" insert-only="true"')),
            "exactly one key field",
        ),
        (xml(source(SCHEMA, 'insert-only="maybe"')), "'insert-only' is 'maybe'; use true or false"),
        (xml(source(SCHEMA, body="<output/>")), "<output>: not supported in <window-source>"),
        (
            xml(IN + '<window-copy name="out"><retention type="bycount_sliding">5</retention>'
                "</window-copy>", EDGE),
            'line 4: <retention>: a window with pi_EMPTY keeps no rows',
        ),
        (
            xml(IN + FILTER.format("y == 1"), EDGE),
            "<expression>: line 1, column 1: there is no field 'y'",
        ),
        (xml(IN + FILTER.format("s"), EDGE), "a filter needs a condition"),
        (xml(IN + '<window-filter name="out"/>', EDGE), "needs an <expression>"),
        (
            xml(IN + COMPUTE.format("id*:int64,y:int32", ""), EDGE),
            "has 0 <field-expr> for 1 fields (y)",
        ),
        (
            xml(IN + COMPUTE.format("id*:int64,y:blob", "<field-expr>s</field-expr>"), EDGE),
            "field 'y': the expression gives string, the field is blob",
        ),
        (
            xml(IN + COMPUTE.format("id*:string,y:int32", "<field-expr>1</field-expr>"), EDGE),
            "field 'id' is string, in the input int64",
        ),
        (xml(IN + FUNCTIONAL.format("z*:int32", ""), EDGE), "key field 'z' is not in the input"),
        (
            xml(IN + FUNCTIONAL.format(SCHEMA, "<function-context><functions><function name='x'>"
                "one()</function></functions></function-context>"), EDGE),
            "<function name=\"x\">: there is no function one()",
        ),
        (xml(IN + calculate(length="²"), EDGE), "windowLength is '²'"),
        (xml(IN + calculate(input_="y"), EDGE), "input: 'y' is not a field of the input window"),
        (xml(IN + calculate(input_="s"), EDGE), "input: 's' is string; Summary takes numbers"),
        (xml(IN + calculate(outputs=""), EDGE), "needs at least one result"),
        (
            xml(IN + calculate(outputs='<property name="sizeOut">total</property>'), EDGE),
            "Summary: 'sizeOut' is not one of",
        ),
        (
            xml(IN + calculate(outputs='<property name="sumOut">y</property>'), EDGE),
            "sumOut goes to 'y', which is not in the schema",
        ),
        (
            xml(
                IN + calculate("id*:int64,b:blob", outputs='<property name="sumOut">b</property>'),
                EDGE,
            ),
            "sumOut goes to 'b', which is blob, not date or double or",
        ),
        (xml(source(SCHEMA, body=KAFKA.format("both", ""))), "property 'type' is 'both'; use pub"),
        (
            xml(IN + '<window-copy name="out">' + KAFKA.format("pub", "") + "</window-copy>", EDGE),
            "only a source window takes events from a pub connector",
        ),
    ],
)  # fmt: skip
def test_refused_with_line_element_and_reason(text: str | bytes, expected: str) -> None:
    found = problems(text)
    assert any(expected in problem for problem in found), found
    assert all(re.match(r"line \d+: <[\w-]+( name=\".*\")?>: ", problem) for problem in found)


def test_a_cycle_is_named() -> None:
    windows = IN + '<window-copy name="a"/><window-copy name="b"/>'
    edges = '<edge source="a" target="b"/><edge source="b" target="a"/>'
    assert any("a cycle: " in problem for problem in problems(xml(windows, edges)))


def test_a_short_text_cannot_make_endless_work() -> None:
    names = " ".join(["in"] * 1000)
    found = problems(xml(IN, f'<edge source="{names}" target="{names}"/>'))
    assert found == ["line 6: <edge>: more than 5000 edges"]
    (long,) = problems(xml(source("x" * 1_000_000)))
    assert len(long) < 1000


def test_a_chain_of_windows_may_be_long() -> None:
    count = 2000
    windows = IN + "".join(f'<window-copy name="w{place}"/>' for place in range(count))
    edges = '<edge source="in" target="w0"/>' + "".join(
        f'<edge source="w{place}" target="w{place + 1}"/>' for place in range(count - 1)
    )
    assert len(read_project(xml(windows, edges)).windows) == count + 1


def test_all_problems_are_told_at_once() -> None:
    windows = source("id*:int65") + '<window-none name="j"/>' + COPY
    found = problems(xml(windows, EDGE + '<edge source="in" target="nobody"/>'))
    assert [problem.split(":")[0] for problem in found] == ["line 3", "line 4", "line 6"]


SAME = KAFKA.format("{}", "<property name='kafkatopic'>same</property>")


@pytest.mark.parametrize(
    ("windows", "reason"),
    [
        (
            source(SCHEMA, body=SAME.format("pub"))
            + f'<window-copy name="out">{SAME.format("sub")}</window-copy>',
            "line 4: <window-copy name=\"out\">: two topics would be called 'same', it belongs to "
            "window q/in already",
        ),
        (
            source(SCHEMA, body=KAFKA.format("sub", "<property name='kafkatopic'>a b</property>"))
            + COPY,
            "line 3: <window-source name=\"in\">: 'a b' is no Kafka topic",
        ),
        (source(SCHEMA, name="in ü") + COPY, "plainer names of project, query and window"),
        (
            source(SCHEMA, body=KAFKA.format("sub", "<property name='kafkatype'>avro</property>"))
            + COPY,
            "kafkatype 'avro' is not supported: topics of a deployment have csv or json",
        ),
        (
            source(
                SCHEMA,
                body=SUB.replace("</connectors>", "")
                + SUB.replace("<connectors>", "").replace('"out"', '"two"'),
            )
            + COPY,
            "a window has one Kafka connector of type sub",
        ),
    ],
)
def test_a_model_that_runs_but_cannot_be_deployed(windows: str, reason: str) -> None:
    edge = EDGE.replace("in", "in ü") if "ü" in windows else EDGE
    project = read_project(xml(windows, edge))
    with pytest.raises(ModelError, match=re.escape(reason)):
        topic_plan(project)


def test_names_may_have_blanks_and_dots() -> None:
    windows = source(SCHEMA, name="the in.1") + '<window-copy name="o u t"/><window-copy name="b"/>'
    edges = '<edge source="the in.1" target="o u t"/><edge source="o u t" target="b"/>'
    project = read_project(xml(windows, edges))
    assert [(edge.source, edge.target) for edge in project.edges] == [
        ("q/the in.1", "q/o u t"),
        ("q/o u t", "q/b"),
    ]


def test_topics_come_from_connectors_a_prefix_or_the_deployment() -> None:
    project = read_project(SAMPLE)
    assert topic_plan(project).all() == [
        "HAtopic1_31415.HA_Project.cq.memory.I",
        "HAtopic1_31415.HA_Project.cq.outbound.O",
        "HAtopic1_31415.M",
        "HAtopic1_31415.E",
        "HAtopic1_31415.warm-up",
        "HAtopic1_31415.P",
    ]
    assert topic_plan(project, "mine").all() == [
        "mine.HA_Project.cq.memory.I",
        "mine.HA_Project.cq.outbound.O",
        "mine.M",
        "mine.E",
        "mine.warm-up",
        "mine.P",
    ]
    plain = read_project(xml(IN))
    assert topic_plan(plain, deployment="team/demo").inputs == {"q/in": "team_demo.p.q.in.I"}
    with pytest.raises(ValueError, match="is no Kafka topic"):
        topic_plan(plain, "a b")
    with pytest.raises(ValueError, match="1 to 249"):
        topic_plan(plain, "a" * 249)


def test_the_digest_knows_what_matters() -> None:
    digest = model_digest(read_project(SAMPLE))
    assert re.fullmatch("[0-9a-f]{64}", digest)
    layout = "<!-- words -->\n" + SAMPLE.replace("<windows>", "<windows>\n\n")
    assert model_digest(read_project(layout)) == digest
    for old, new in [
        (">20<", ">21<"),
        ('index="pi_EMPTY"', 'index="pi_HASH"'),
        ("MemoryUsed", "MemoryBusy"),
        ("HAtopic1_31415<", "other<"),
    ]:
        assert model_digest(read_project(SAMPLE.replace(old, new))) != digest, new


@pytest.mark.parametrize("seed", range(20))
def test_a_damaged_model_reads_or_is_refused_with_a_line(seed: int) -> None:
    """Forty mutations a seed; whatever happens, it is a project or a ModelError."""
    dice = random.Random(seed)
    refused = 0
    for _ in range(40):
        text = _mutated(dice.choice([SAMPLE, TRADES]), dice)
        try:
            read_project(text)
        except ModelError as error:
            refused += 1
            assert error.problems
            assert all(problem.line >= 1 and problem.reason for problem in error.problems)
    assert refused


def _mutated(text: str, dice: random.Random) -> str:
    words = re.findall(r"[\w.@-]+|[^\w\s]", text)
    for _ in range(dice.randint(1, 3)):
        word = dice.choice(words)
        place = dice.choice([match.start() for match in re.finditer(re.escape(word), text)] or [0])
        end = place + len(word)
        other = dice.choice([*words, "", "&", "<", '"', "0", "x" * 300, "\x00", "é", "<a/>", "@A@"])
        if dice.random() < 0.2:
            lines = text.split("\n")
            del lines[dice.randrange(len(lines))]
            text = "\n".join(lines)
        else:
            text = text[:place] + other + text[end:]
    return text

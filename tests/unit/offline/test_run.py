"""`espha run`: files in, files out."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from espha.offline.command import BROKEN, DONE, REFUSED, TROUBLE, guarded
from support.models import source, xml
from support.offline import FakeClock, Place

READINGS = (
    "id;place;heat;at;parts",
    '1;"a;b";20.5;01.02.2024 03:04;[1;2]',
    "2;c;;;",
    "3;d;30;02.02.2024 00:00;[]",
    "4;e;thirty;;",
    "5;f;40;2024-02-02;",
)


def test_connectors_read_and_write_files_as_their_properties_say(tmp_path: Path) -> None:
    """Header, delimiter, dateformat in; header, precision, dateformat out; home and output."""
    place = Place(tmp_path, "bars.xml")
    place.write("data/readings.csv", *[line.replace("[1;2]", '"[1;2]"') for line in READINGS])
    assert place.run() == DONE
    assert place.lines("output/hot.csv") == [
        "opcode,flags,id,place,heat,at,parts",
        "I,N, 1,a;b,20.5,03:04,[1;2]",
        "I,N, 3,d,30.0,00:00,[]",
    ]
    assert "readings.csv:5: field heat: 'thirty' is not a number (double)" in place.said
    assert "readings.csv:6: field at: '2024-02-02' is not a stamp written as" in place.said
    assert "5 events in, 2 bad; run by" in place.said


def test_set_wins_over_the_properties_of_the_project(tmp_path: Path) -> None:
    place = Place(tmp_path, "bars.xml")
    place.write("data/readings.csv", *READINGS[:1], "1;a;20.5;;", "3;b;30;;")
    assert place.run(settings=["LIMIT=25"]) == DONE
    assert place.lines("output/hot.csv")[1:] == ["I,N, 3,b,30.0,,"]


def test_inputs_beside_connectors_that_are_left_alone(tmp_path: Path) -> None:
    """An update is a U row and the old one as a D row; what collapses is one U row."""
    place = Place(tmp_path, "bars.xml")
    one = place.write("one.csv", "I,N,1,a,30,,", "U,N,1,a,35,,", "P,P,1,,36,,")
    two = place.write("two.csv", "D,N,1,,,,", "sd,n,1,,,,", "upsert,normal,2,b,50,,[7]")
    trace = tmp_path / "trace.csv"
    inputs = [f"readings={one}", f"q/readings={two}"]
    assert place.run(inputs=inputs, traces=[f"hot={trace}"], connectors=False) == DONE
    assert place.lines("trace.csv") == [
        "I,N, 1,a,30.000000,,",
        "U,N, 1,a,35.000000,,",
        "D,N, 1,a,30.000000,,",
        "U,N, 1,a,36.000000,,",
        "D,N, 1,a,35.000000,,",
        "D,N, 1,a,36.000000,,",
        "I,N, 2,b,50.000000,,[7]",
    ]
    assert not (tmp_path / "output").exists()


@pytest.mark.parametrize(
    ("options", "rows", "expected"),
    [
        (",header=2,noopcode", ["a", "b", "1,x"], ["I,N, 1,x"]),
        (",header,noopcode,upsert", ["a", "1,x", "1,y"], ["I,N, 1,x", "U,N, 1,y", "D,N, 1,x"]),
        (",noflags", ["I,1,x", "D,1,"], ["I,N, 1,x", "D,N, 1,x"]),
        (",noopcode,delimiter=;", ["1;a,b"], ['I,N, 1,"a,b"']),
        (",noopcode,delimiter=tab", ["1\ta b"], ["I,N, 1,a b"]),
        (",noopcode,delimiter=,", ["1,x"], ["I,N, 1,x"]),
        (",block=2", ["I,N,1,x", "", "I,N,2,y", "I,N,3,"], ["I,N, 1,x", "I,N, 2,y", "I,N, 3,"]),
        (",json", ['{"id":1,"x":"a"}', '{"id":"2"}'], ["I,N, 1,a", "I,N, 2,"]),
        (",json", ['[[{"opcode":"p","id":1},{"event":{"id":2}}],', "[]]"], ["I,N, 1,", "I,N, 2,"]),
        (",xml", ["<e><event><id>1</id><x>a</x></event>", "</e>"], ["I,N, 1,a"]),
    ],
)
def test_options_of_an_input(
    tmp_path: Path, options: str, rows: list[str], expected: list[str]
) -> None:
    place = Place(tmp_path)
    place.write("model.xml", xml(source("id*:int32,x:string"), index="pi_HASH"))
    rows_file = place.write("rows.txt", *rows)
    trace = tmp_path / "trace.csv"
    assert place.run(inputs=[f"in={rows_file}{options}"], traces=[f"in={trace}"]) == DONE
    assert place.lines("trace.csv") == expected
    assert " 0 bad" in place.said


@pytest.mark.parametrize(
    ("name", "row"),
    [
        ("a.JSON", '{"id":1}'),
        ("a.jsonl", '{"id":1}'),
        ("a.xml", "<event id='1'/>"),
        ("a", "i,n,1,"),
    ],
)
def test_the_end_of_a_name_says_what_a_file_is(tmp_path: Path, name: str, row: str) -> None:
    place = Place(tmp_path)
    place.write("model.xml", xml(source("id*:int32,x:string")))
    file, trace = place.write(name, row), tmp_path / "trace.csv"
    assert place.run(inputs=[f"in={file}"], traces=[f"in={trace}"]) == DONE
    assert place.lines("trace.csv") == ["I,N, 1,"]


def test_keys_that_are_numbered_need_no_column(tmp_path: Path) -> None:
    place = Place(tmp_path)
    window = source("x:string,id*:int64,y:date", 'insert-only="true" autogen-key="true"')
    place.write("model.xml", xml(window))
    plain = place.write("a.csv", "i,n,a,,1970-01-02 00:00:00")
    short = place.write("b.csv", "b,02/01/70")
    trace = tmp_path / "trace.csv"
    inputs = [f"in={plain}", f"in={short},noopcode,noautogenfield,dateformat=%d/%m/%y"]
    assert place.run(inputs=inputs, traces=[f"in={trace}"]) == DONE
    assert place.lines("trace.csv") == ["I,N, a,0,86400", "I,N, b,1,86400"]


def test_a_last_line_counts_without_a_newline(tmp_path: Path) -> None:
    place = Place(tmp_path)
    place.write("model.xml", xml(source("id*:int32,x:string")))
    (tmp_path / "rows.csv").write_bytes(b'\xef\xbb\xbfI,N,1,"a\r\nb"\r\nI,N,2,c')
    trace = tmp_path / "trace.csv"
    assert place.run(inputs=[f"in={tmp_path / 'rows.csv'}"], traces=[f"in={trace}"]) == DONE
    assert trace.read_bytes() == b'I,N, 1,"a\r\nb"\nI,N, 2,c\n'


def test_bad_rows_are_counted_and_the_first_are_told(tmp_path: Path) -> None:
    """An open quote spoils its own line only; the model goes on."""
    place = Place(tmp_path)
    place.write("model.xml", xml(source("id*:int32,x:string"), index="pi_HASH"))
    rows = ['I,N,1,"open', "I,N,2,x", "I,N,2,x", "X,N,3,x", "I,N,4x", *["I,N,,x"] * 10, "I,N,5,z"]
    file = place.write("rows.csv", *rows)
    trace = tmp_path / "trace.csv"
    assert place.run(inputs=[f"in={file}"], traces=[f"in={trace}"]) == DONE
    assert place.lines("trace.csv") == ["I,N, 2,x", "I,N, 5,z"]
    for line, reason in [
        (1, "not a row of CSV: a quote at column 7 is not closed well"),
        (3, "insert of key 2, which exists (at q/in)"),
        (4, "unknown opcode 'X'; known are I, U, P, D and SD"),
        (5, "field id: '4x' is not a whole number (int32)"),
    ]:
        assert f"{file}:{line}: {reason}\n" in place.said
    assert "… and 4 more refusals" in place.said
    assert "16 events in, 14 bad" in place.said


def test_groups_start_in_the_order_of_their_edges(tmp_path: Path) -> None:
    """The late subscriber begins with a snapshot of what is there by then."""
    place = Place(tmp_path, "groups.xml")
    place.write("first.csv", "I,N,1,a", "I,N,2,b", "U,N,1,c", "D,N,2,")
    place.write("second.csv", "I,N,7,z")
    more = place.write("more.csv", "I,N,3,d")
    traces = [f"{name}={tmp_path / name}.csv" for name in ("one", "two")]
    assert place.run(traces=traces, inputs=[f"first={more}"]) == DONE
    assert place.lines("late.csv") == ["I,N, 1,c", "I,N, 3,d"]
    assert place.lines("two.csv") == ["I,N, 7,z"]


def test_a_timer_ticks_by_the_clock_until_nothing_flows(tmp_path: Path) -> None:
    """Ticks lie on whole intervals from the base time on; they do not keep a run alive."""
    place = Place(tmp_path, "clock.xml")
    rows = place.write("rows.csv", "I,N,1")

    def later(now: int) -> None:
        if now >= 1_002_000 and len(place.lines("rows.csv")) == 1:
            rows.write_text("I,N,1\nI,N,2\nI,N,3", encoding="utf-8")

    traces = [f"{name}={tmp_path / name}.trace" for name in ("all", "rows")]
    clock = FakeClock(1_000_500, later)
    assert place.run(traces=traces, idle_s=3, clock=clock) == DONE
    assert place.lines("all.trace") == [
        f"I,N, {number},{1_001_000_000 + number * 1_000_000},tick" for number in range(4)
    ] + ["I,N, 4,1005000000,tick"]
    assert place.lines("rows.trace") == ["I,N, 1", "I,N, 2"]


def test_without_until_idle_a_run_ends_with_the_finite_inputs(tmp_path: Path) -> None:
    place = Place(tmp_path, "clock.xml")
    place.write("rows.csv", "I,N,1")
    assert place.run(traces=[f"rows={tmp_path / 'rows.trace'}"]) == DONE
    assert place.lines("rows.trace") == ["I,N, 1"]


def test_a_run_ends_three_heartbeats_after_the_last_event(tmp_path: Path) -> None:
    script = (
        "local rows, beats = {}, 0 function create(d) rows[#rows + 1] = d end "
        "function late() beats = beats + 1 local found = beats == 2 and rows or {} return found end"
    )
    place = Place(tmp_path)
    window = (
        '<window-lua name="late" heartbeat="late" index="pi_EMPTY">'
        f"<schema-string>id*:int64</schema-string><code>{script}</code></window-lua>"
    )
    edge = '<edge source="in" target="late"/>'
    place.write("model.xml", xml(source("id*:int64") + window, edge))
    rows = place.write("rows.csv", "I,N,1", "I,N,2")
    trace = tmp_path / "late.csv"
    clock = FakeClock()
    assert place.run(inputs=[f"in={rows}"], traces=[f"late={trace}"], clock=clock) == DONE
    assert place.lines("late.csv") == ["I,N, 1", "I,N, 2"]
    assert clock.time == 1_005_000


def paced(**properties: str) -> str:
    listed = "".join(
        f'<property name="{name}">{value}</property>' for name, value in properties.items()
    )
    body = f'<connectors><connector class="fs"><properties>{listed}</properties></connector>'
    return xml(source("id*:int64", body=f"{body}</connectors>"))


def test_rate_repeat_and_most_of_a_publisher(tmp_path: Path) -> None:
    """Ten events at 5 a second take 1.8 seconds: the first one comes at once."""
    place = Place(tmp_path)
    place.write("rows.csv", "1", "2", "3", "4")
    place.write(
        "model.xml",
        paced(fsname="rows.csv", addcsvopcode="true", rate="5", repeatcount="9", maxevents="10"),
    )
    clock = FakeClock(0)
    assert place.run(traces=[f"in={tmp_path / 't.csv'}"], clock=clock) == DONE
    assert place.lines("t.csv") == [f"I,N, {n}" for n in (1, 2, 3, 4, 1, 2, 3, 4, 1, 2)]
    assert clock.time == 1800


@pytest.mark.parametrize(
    ("properties", "note"),
    [
        ({"fsname": "@NOBODY@/x.csv"}, "token @NOBODY@ has no value"),
        ({"fsname": "x", "fstype": "binary"}, "fstype binary is not read or written here"),
    ],
)
def test_what_cannot_be_run_is_said(tmp_path: Path, properties: dict[str, str], note: str) -> None:
    place = Place(tmp_path)
    place.write("model.xml", paced(**properties))
    assert place.run() == DONE
    assert f"connector q/in/ is not run: {note}" in place.said


def test_files_that_cannot_be_opened_are_told_and_the_rest_is_done(tmp_path: Path) -> None:
    place = Place(tmp_path)
    place.write("model.xml", paced(fsname="none.csv"))
    rows = place.write("rows.csv", "I,N,1")
    trace = tmp_path / "t.csv"
    assert place.run(inputs=[f"in={rows}"], traces=[f"in={trace}"]) == TROUBLE
    assert "none.csv: No such file or directory" in place.said
    assert place.lines("t.csv") == ["I,N, 1"]


@pytest.mark.parametrize(
    ("wish", "reason"),
    [
        ({"inputs": ["in"]}, "--input 'in': write WINDOW=FILE"),
        ({"inputs": ["out=x.csv"]}, "there is no window 'out'; the model has q/in, r/in, r/two"),
        ({"inputs": ["in=x.csv"]}, "there are several windows 'in': write q/in or r/in"),
        ({"inputs": ["two=x.csv"]}, "r/two is not a source window"),
        ({"inputs": ["q/in=x.csv"]}, "x.csv: No such file or directory"),
        ({"inputs": ["q/in=x.csv,head=1"]}, "'head=1' is not one of the options: header, noopcode"),
        ({"inputs": ["q/in=x.csv,block=0"]}, "block is '0'; give a whole number from 1"),
        ({"inputs": ["q/in=x.csv,delimiter=ab"]}, "'ab' is not a delimiter"),
        ({"inputs": ["q/in=x.csv,noopcode=1"]}, "noopcode has no value"),
        ({"traces": ["two=/proc/none/x"]}, "/proc/none"),
        ({"traces": ["two=t", "q/in=t"]}, "two windows cannot be written to one file, t"),
        ({"settings": ["=1"]}, "--set '=1': write NAME=VALUE"),
        ({"model": Path("none.xml")}, "none.xml: No such file or directory"),
    ],
)
def test_what_cannot_be_meant_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, wish: dict[str, Any], reason: str
) -> None:
    monkeypatch.chdir(tmp_path)
    place = Place(tmp_path)
    other = xml(
        source("id*:int32") + '<window-copy name="two"/>', '<edge source="in" target="two"/>'
    )
    query = other[other.index("<contquery ") : other.index("</contqueries>")].replace('"q"', '"r"')
    text = xml(source("id*:int32"), index="pi_HASH")
    place.write("model.xml", text.replace("</contqueries>", f"{query}</contqueries>"))
    assert place.run(**wish) == REFUSED
    assert reason in place.said


def test_a_refused_model_is_not_run(tmp_path: Path) -> None:
    place = Place(tmp_path)
    place.write("model.xml", xml("<window-score name='s'/>"))
    assert place.run() == REFUSED
    assert 'line 3: <window-score name="s">: this window is not supported: analytic' in place.said


def test_files_may_be_standard_input_and_output(tmp_path: Path) -> None:
    place = Place(tmp_path)
    place.write("model.xml", xml(source("id*:int32,x:string")))
    command = [sys.executable, "-m", "espha.cli", "run", "model.xml", "--engine", "kernel"]
    done = subprocess.run(
        [*command, "--input", "in=-,noopcode", "--trace", "in=-"],
        input="1,a\n2,b", cwd=tmp_path, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stdout == "I,N, 1,a\nI,N, 2,b\n"
    assert "2 events in, 0 bad; run by the kernel" in done.stderr


def test_a_mistake_of_our_own_is_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    monkeypatch.delenv("ESPHA_DEBUG", raising=False)
    assert guarded(lambda: 1 // 0, said.append) == BROKEN
    assert said[0].startswith("a mistake in espha, at test_run.py:")
    assert "ZeroDivisionError: integer division or modulo by zero; please report it" in said[0]


def test_messages_are_sent_unless_the_models_connectors_are_left_alone(tmp_path: Path) -> None:
    """A receiver that is not there is told of, and the run goes on."""
    place = Place(tmp_path)
    window = (
        '<window-notification name="out"><delivery-channels>'
        "<http><http-info><url>http://127.0.0.1:1/</url></http-info></http>"
        "<log><log-contents><text-content>$x</text-content></log-contents></log>"
        "</delivery-channels></window-notification>"
    )
    edge = '<edge source="in" target="out"/>'
    place.write("model.xml", xml(source("id*:int32,x:string") + window, edge))
    rows = place.write("rows.csv", "I,N,1,a", "I,N,2,b")
    trace = tmp_path / "t.csv"
    assert place.run(inputs=[f"in={rows}"], traces=[f"out={trace}"]) == DONE
    assert place.said.count("q/out: http://127.0.0.1:1/ could not be reached: ") == 2
    assert "messages (2)" in place.said
    assert len(place.lines("t.csv")) == 4
    assert place.run(inputs=[f"in={rows}"], connectors=False) == DONE
    assert "could not be reached" not in place.said

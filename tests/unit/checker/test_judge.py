"""Each kind of damage is found, and nothing else is."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from espha.checker.damage import Damage, compare
from espha.checker.expect import Read, SumWindow
from espha.checker.judge import Evidence, judge, judge_order
from espha.checker.report import Report
from espha.reader import read_project

MODEL = Path(__file__).parents[3] / "manifests" / "models" / "ha-project.xml"
PROJECT = read_project(MODEL.read_bytes())
SOURCE, TARGET = PROJECT.windows["cq/memory"], PROJECT.windows["cq/outbound"]
SUM20 = SumWindow("Record_Counter", 20, "sum20")
ROWS = 50


def order_record(sequence: int, start: int, end: int, **changes: object) -> dict[str, object]:
    return {
        "sequence": sequence,
        "inputs": [["in", start, end]] if end > start else [],
        "clock": sequence,
        "outputs": end - start,
        "digest": "",
        "model": "m",
        "engine": "engine-0",
        "epoch": 1,
        "runtime": "",
        **changes,
    }


def output(number: int) -> Read:
    """Row `number` (from 0) as the sample model must write it, computed by hand."""
    last = range(max(0, number - 19), number + 1)
    value = f"I,N, {number},{number + 1},10,20,30,{sum(n + 1 for n in last):.6f}"
    return Read(number, value, f"in:{number}:0")


@pytest.fixture
def evidence(tmp_path: Path) -> Evidence:
    """What a faultless run leaves."""
    outputs = [output(number) for number in range(ROWS)]
    source, result = tmp_path / "in.csv", tmp_path / "out.csv"
    rows = [f"{n + 1},10,20,30" for n in range(ROWS)]
    source.write_text("Record_Counter,MemoryUsed,MemoryFree,epoch\n" + "\n".join(rows) + "\n")
    result.write_text(
        "opcode,flags,index_esp,sum20\n" + "".join(f"{each.value}\n" for each in outputs)
    )
    order = [order_record(1, 0, 0), order_record(2, 0, 20), order_record(3, 20, ROWS)]
    return Evidence(
        input_topic="in",
        inputs=[Read(n, f"I,N,,{row}") for n, row in enumerate(rows)],
        outputs=outputs,
        dead=[],
        order=[json.dumps(each) for each in order],
        offsets={"in": range(ROWS)},
        partitions={"in": 1, "out": 1},
        source_file=source,
        result_file=result,
    )


def judged(evidence: Evidence) -> Report:
    return judge(evidence, SOURCE, TARGET, [SUM20])


def test_a_faultless_run_is_faultless(evidence: Evidence) -> None:
    report = judged(evidence)
    assert report.ok
    assert report.complaints() == []
    assert (report.rows_in_file, report.rows_in, report.rows_out, report.rows_in_result) == (
        ROWS, ROWS, ROWS, ROWS,
    )  # fmt: skip


def changed(place: int, old: str, new: str) -> Callable[[list[Read]], None]:
    def change(rows: list[Read]) -> None:
        assert old in rows[place].value
        rows[place] = rows[place]._replace(value=rows[place].value.replace(old, new))

    return change


def swap(rows: list[Read]) -> None:
    rows[10], rows[11] = rows[11], rows[10]


@pytest.mark.parametrize(
    ("damage", "expected"),
    [
        (lambda rows: rows.pop(10), {"lost": 1}),
        (lambda rows: rows.pop(), {"lost": 1}),
        (lambda rows: rows.clear(), {"lost": ROWS}),
        (lambda rows: rows.insert(12, rows[11]), {"double": 1}),
        (lambda rows: rows.append(rows[0]), {"double": 1}),
        (swap, {"disorder": 1}),
        (lambda rows: rows.append(Read(99, "I,N, 1,1,1,1,1,1.000000", "in:99:0")), {"foreign": 1}),
        (changed(30, ",430.000000", ",429.000000"), {"wrong_sums": 1}),
        (changed(30, ",10,", ",11,"), {"wrong_values": 1}),
        (changed(30, "I,N", "U,N"), {"wrong_values": 1}),
        (changed(30, ",30,", ",30,7,"), {"wrong_values": 1}),
        (changed(30, "I,N, 30", "I,N, 29"), {"wrong_values": 1}),
    ],
    ids=["removed", "last removed", "all removed", "doubled", "first again at the end", "swapped",
         "foreign", "sum altered", "value altered", "opcode altered", "column added",
         "index altered"],
)  # fmt: skip
def test_damage_on_the_output_topic(
    evidence: Evidence, damage: Callable[[list[Read]], None], expected: dict[str, int]
) -> None:
    damage(evidence.outputs)
    evidence.result_file = None
    report = judged(evidence)
    found = {kind: report.total(kind) for kind in ("lost", "double", "disorder", "foreign")}
    found |= {"wrong_sums": report.wrong_sums, "wrong_values": report.wrong_values}
    assert {kind: count for kind, count in found.items() if count} == expected
    assert not report.ok
    assert report.complaints()


def test_a_lost_state_shows_in_twenty_sums(evidence: Evidence) -> None:
    """An engine that took over with empty state writes wrong sums until the window is full."""
    for number in range(25, 44):
        total = sum(n + 1 for n in range(25, number + 1))
        evidence.outputs[number] = evidence.outputs[number]._replace(
            value=f"I,N, {number},{number + 1},10,20,30,{total:.6f}"
        )
    assert judged(evidence).wrong_sums == 19


@pytest.mark.parametrize(
    ("damage", "expected"),
    [
        (lambda lines: lines.pop(20), Damage(lost=1)),
        (lambda lines: lines.insert(20, lines[20]), Damage(double=1)),
        (lambda lines: lines.append("I,N, 5"), Damage(foreign=1)),
        (lambda lines: lines.insert(5, lines.pop(6)), Damage(disorder=1)),
    ],
    ids=["removed", "doubled", "torn", "swapped"],
)
def test_damage_in_the_result_file(
    evidence: Evidence, damage: Callable[[list[str]], None], expected: Damage
) -> None:
    assert evidence.result_file is not None
    lines = evidence.result_file.read_text().splitlines()
    damage(lines)
    evidence.result_file.write_text("\n".join(lines))
    found = judged(evidence).result
    assert found is not None
    assert found.first
    assert Damage(found.lost, found.double, found.disorder, found.foreign) == expected


def test_a_row_that_was_never_published_is_lost(evidence: Evidence) -> None:
    assert evidence.source_file is not None
    with evidence.source_file.open("a") as file:
        file.write("51,10,20,30\n")
    report = judged(evidence)
    assert report.source == Damage(lost=1, first="lost: ('51', '10', '20', '30')")
    assert not report.ok


def test_bad_rows_must_be_dead_letters(evidence: Evidence) -> None:
    """A bad row takes no number, adds to no sum, and has to appear as a dead letter."""
    evidence.source_file = evidence.result_file = None
    evidence.inputs.append(Read(ROWS, "I,N,,many,10,20,30"))
    evidence.inputs.append(Read(ROWS + 1, "I,N,,51,10,20,30"))
    last = output(ROWS)._replace(id=f"in:{ROWS + 1}:0")
    evidence.outputs.append(last)
    evidence.order.append(json.dumps(order_record(4, ROWS, ROWS + 2)))
    assert judged(evidence).dead_letters == Damage(lost=1, first=f"lost: in:{ROWS}:0")
    evidence.dead.append(Read(0, "I,N,,many,10,20,30", f"in:{ROWS}:0"))
    assert judged(evidence).ok


@pytest.mark.parametrize(
    ("records", "sentence"),
    [
        ([order_record(1, 0, 0), order_record(3, 0, ROWS)], "sequence 3 follows 1"),
        ([order_record(1, 0, 0), order_record(1, 0, ROWS)], "sequence 1 follows 1"),
        ([order_record(1, 0, 20), order_record(2, 21, ROWS + 1)], "follows an end at 20"),
        ([order_record(1, 0, 20), order_record(2, 19, ROWS - 1)], "follows an end at 20"),
        (
            [order_record(1, 0, 0), order_record(2, 0, 0, epoch=2), order_record(3, 0, ROWS)],
            "epoch 1 after 2",
        ),
        ([order_record(1, 0, 0), order_record(2, 0, ROWS, epoch=3)], "goes from 1 to 3"),
        ([order_record(1, 0, 0), order_record(2, 0, ROWS, engine="engine-1")], "two engines"),
        ([order_record(1, 0, 0, clock=5), order_record(2, 0, ROWS)], "the clock goes back"),
        ([order_record(1, 0, ROWS, outputs=7)], "say 7 outputs"),
    ],
    ids=["gap", "repeat", "range left out", "range again", "epoch back", "epoch skipped",
         "two engines", "clock", "outputs"],
)  # fmt: skip
def test_damage_in_the_order_log(
    evidence: Evidence, records: list[dict[str, object]], sentence: str
) -> None:
    evidence.order = [json.dumps(each) for each in records]
    assert any(sentence in problem for problem in judged(evidence).order)


@pytest.mark.parametrize("value", ["hello", "7", "{}"])
def test_what_is_no_order_record_is_told_and_not_judged(evidence: Evidence, value: str) -> None:
    evidence.order = [*evidence.order[:2], value, *evidence.order[2:]]
    (problem,) = judged(evidence).order
    assert problem == "something else has written to this topic, so often: 1"


def test_equal_entries_are_told_apart_by_number() -> None:
    assert compare(["x", "x"], ["x", "x"]).none
    assert compare(["x", "x"], ["x"]).lost == 1
    assert compare(["x", "x"], ["x", "x", "x"]).double == 1


def test_input_that_no_order_record_names_is_not_processed(evidence: Evidence) -> None:
    evidence.order = []
    report = judge_order(evidence)
    assert (report.ok, report.unprocessed, report.waiting) == (False, ROWS, 0)
    evidence.drained = False
    report = judge_order(evidence)
    assert (report.ok, report.unprocessed, report.waiting) == (True, 0, ROWS)


def test_input_that_was_passed_over_is_not_processed(evidence: Evidence) -> None:
    evidence.drained, evidence.order = False, [json.dumps(order_record(1, 10, 20))]
    report = judge_order(evidence)
    assert (report.ok, report.unprocessed, report.waiting) == (False, 10, ROWS - 20)


def test_records_on_other_partitions_would_be_missed(evidence: Evidence) -> None:
    evidence.partitions = {"in": 1, "out": 3}
    report = judge_order(evidence)
    assert report.complaints() == ["input: topic out has 3 partitions; only the first one is read"]
    assert not report.ok


OTHER = {"model": "other", "since": 1}


def test_a_changed_model_is_no_damage(evidence: Evidence) -> None:
    evidence.order = [
        json.dumps(order_record(1, 0, 20, switch="other", shadow=OTHER)),
        json.dumps(order_record(2, 20, ROWS, model="other")),
    ]
    report = judge_order(evidence)
    assert (report.complaints(), report.models) == ([], 1)
    log = "order-log"
    trimmed = replace(evidence, order=evidence.order, order_log=log, trimmed=[log])
    assert judge_order(trimmed).complaints() == []


@pytest.mark.parametrize(
    ("first", "model", "said"),
    [
        ({}, "other", "sequence 2 is of model other, and sequence 1 announces m"),
        (
            {"switch": "other", "shadow": OTHER},
            "m",
            "is of model m, and sequence 1 announces other",
        ),
        ({"switch": "other"}, "other", "sequence 1 goes over to model other, which no engine runs"),
    ],
)
def test_a_model_changes_only_where_the_log_says_so(
    evidence: Evidence, first: dict[str, object], model: str, said: str
) -> None:
    """Two models that lead in turn would each begin with empty state."""
    evidence.order = [
        json.dumps(order_record(1, 0, 20, **first)),
        json.dumps(order_record(2, 20, ROWS, model=model)),
    ]
    assert any(said in each for each in judge_order(evidence).complaints())


def test_a_record_that_was_set_aside_is_a_dead_letter(evidence: Evidence) -> None:
    """The last one here, so that no sum is another one; the order record has to name it."""
    last = ROWS - 1
    evidence.outputs.pop()
    evidence.dead.append(Read(0, evidence.inputs[last].value, f"in:{last}:0"))
    evidence.result_file = None
    assert not judged(evidence).ok
    skipped = order_record(3, 20, ROWS, skipped=[["in", last, "no engine survives it"]])
    evidence.order[2] = json.dumps(skipped)
    assert judged(evidence).complaints() == []
    elsewhere = order_record(3, 20, ROWS, skipped=[["in", 3, "no engine survives it"]])
    evidence.order[2] = json.dumps(elsewhere)
    complaints = judged(evidence).complaints()
    assert any("in 3 is set aside, and not in the batch" in each for each in complaints)


def with_two_models(evidence: Evidence, begin: int) -> Evidence:
    """Rows 10 to 19 are those of another model, which began in the shadow at row `begin`."""
    shadow = {"model": "other", "since": 1, "cursors": [["in", begin]]}
    carried = {"model": "other", "since": 1}
    order = [
        order_record(1, 0, begin, shadow=shadow),
        order_record(2, begin, 10, shadow=carried, switch="other"),
        order_record(3, 10, 20, model="other", shadow={"model": "m", "since": 0}, switch="m"),
        order_record(4, 20, ROWS),
    ]
    outputs = list(evidence.outputs)
    for number in range(10, 20):
        total = sum(n + 1 for n in range(max(begin, number - 2), number + 1))
        value = f"I,N, {number - begin},{number + 1},10,20,30,{total:.6f}"
        outputs[number] = Read(number, value, f"in:{number}:0")
    return replace(
        evidence, order=[json.dumps(each) for each in order], outputs=outputs, result_file=None
    )


@pytest.mark.parametrize(("model", "length"), [("m", 20), ("other", 3)])
def test_each_of_several_models_is_judged_by_its_own_rows(
    evidence: Evidence, model: str, length: int
) -> None:
    """The one that came back must say what it would have said had it never left."""
    sums = [SumWindow("Record_Counter", length, "sum20")]
    told = with_two_models(replace(evidence, model=model), begin=4)
    assert judge(told, SOURCE, TARGET, sums).complaints() == []
    wrong = 25 if model == "m" else 15
    told.outputs[wrong] = told.outputs[wrong]._replace(value=told.outputs[0].value)
    assert not judge(told, SOURCE, TARGET, sums).ok


def test_a_trimmed_log_begins_anywhere_but_goes_on_without_a_gap(evidence: Evidence) -> None:
    evidence.order_log, evidence.order = "m", evidence.order[2:]
    evidence.inputs = evidence.inputs[10:]
    evidence.offsets = {"in": range(10, ROWS)}
    assert judge_order(evidence).order == ["sequence 3 follows 0"]
    evidence.trimmed = ["m", "in"]
    report = judge_order(evidence)
    assert (report.ok, report.first_record, report.complaints()) == (True, 3, [])
    evidence.order.append(json.dumps(order_record(5, ROWS, ROWS)))
    assert judge_order(evidence).order == ["sequence 5 follows 3"]


def test_what_people_have_left_out_is_not_missed(evidence: Evidence) -> None:
    """Rows 20 to 29 were not processed, and the order log says that they were not to be."""
    order = [
        order_record(1, 0, 20),
        order_record(2, 0, 0, engine="espha-skip", epoch=2, resumes=[["in", 30]]),
        order_record(3, 30, ROWS, epoch=3),
    ]
    told = [json.dumps(each) for each in order]
    without = replace(evidence, order=told, outputs=evidence.outputs[:20] + evidence.outputs[30:])
    report = judge_order(without)
    assert (report.left_out, report.unprocessed, report.order) == (10, 0, [])
    assert report.inputs == []
    silent = [json.dumps({**each, "resumes": []}) for each in order]
    report = judge_order(replace(without, order=silent))
    assert (report.left_out, report.unprocessed) == (0, 10)
    assert report.order == ["sequence 3: in 30-50 follows an end at 20"]


def test_outputs_of_what_was_left_out_are_not_expected(evidence: Evidence) -> None:
    """The last rows of all were left out: nothing else changes for the others."""
    order = [order_record(1, 0, 40), order_record(2, 0, 0, epoch=2, resumes=[["in", ROWS]])]
    told = [json.dumps(each) for each in order]
    left_out = replace(evidence, order=told, outputs=evidence.outputs[:40], result_file=None)
    assert judged(left_out).ok
    lost = replace(left_out, outputs=evidence.outputs[:39])
    assert judged(lost).topic == Damage(lost=1, first=judged(lost).topic.first)  # type: ignore[union-attr]
    assert judged(replace(left_out, outputs=evidence.outputs)).total("foreign") == 10

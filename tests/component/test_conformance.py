"""A few projects of the corpus through Spark give what the kernel alone gives."""

from dataclasses import replace

import pytest

from conformance.corpus import corpus_folder, samples
from conformance.trial import Setup, try_out
from tools import jars

SNIPPETS = "iot-transformation-window-code-snippets/examples"
NAMES = (
    f"{SNIPPETS}/aggregate/aggregate_exp_xml",
    f"{SNIPPETS}/join/join_select_xml",
    "esp-studio-examples/Transformations/splitter",
)
CORPUS = corpus_folder()
SAMPLES = {} if CORPUS is None else {sample.name: sample for sample in samples(CORPUS)}
pytestmark = [
    pytest.mark.component,
    pytest.mark.skipif(
        CORPUS is None, reason="there is no corpus in ../shared/corpus, and ESPHA_CORPUS names none"
    ),
]


@pytest.mark.parametrize("name", NAMES)
def test_spark_gives_what_the_kernel_gives(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ESPHA_JARS", str(jars.directory("engine")))
    kernel = try_out(SAMPLES[name], Setup())
    spark = try_out(SAMPLES[name], replace(Setup(), engine="spark"))
    assert spark.code == kernel.code == 0, spark.said
    assert spark.tables == kernel.tables
    assert any(len(table) > 1 for table in spark.tables.values())

"""The reference made of the types: complete, and without a field that nobody explains."""

import re

import pytest
from pydantic import BaseModel

from espha.protocol import reference
from espha.protocol.order import OrderRecord
from espha.protocol.settings import Settings
from espha.protocol.states import EndReason, EngineState, Explained, KillReason, SwitchoverReason

DESCRIBED: list[type[BaseModel]] = [Settings, OrderRecord, *reference.SAID_BY.values()]
EXPLAINED: list[type[Explained]] = [EngineState, EndReason, KillReason, SwitchoverReason]


@pytest.mark.parametrize("model", DESCRIBED, ids=lambda model: model.__name__)
def test_every_field_has_a_description(model: type[BaseModel]) -> None:
    for name, field in model.model_fields.items():
        assert (field.description or "").endswith("."), name


@pytest.mark.parametrize("names", EXPLAINED, ids=lambda names: names.__name__)
def test_every_name_has_a_sentence(names: type[Explained]) -> None:
    for one in names:
        assert one.sentence.endswith("."), one


@pytest.mark.parametrize("name", list(reference.TABLES))
def test_a_table_has_as_many_cells_in_each_line(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert reference.main([name]) == 0
    blocks = re.findall(r"(?:^\|.*\n)+", capsys.readouterr().out, re.M)
    assert blocks
    for block in blocks:
        assert len({len(re.findall(r"(?<!\\)\|", line)) for line in block.splitlines()}) == 1
        assert len(block.splitlines()) > 2


def test_settings_name_their_variables_and_defaults() -> None:
    assert "| `ESPHA_FAILURE_TIMEOUT_MS` |" in reference.settings()
    assert "| `ESPHA_BOOTSTRAP` | Kafka brokers, `host:port,…`. | must be set |" in (
        reference.settings()
    )


def test_sentences_are_no_metrics() -> None:
    table = reference.metrics()
    assert "espha_message" not in table
    assert "`message`" not in table
    assert "`espha_sequence`" in table
    assert '`espha_kills{reason="…"}`' in table


@pytest.mark.parametrize("arguments", [[], ["x"], ["settings", "status"]])
def test_an_unknown_table_is_refused(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert reference.main(arguments) == 2
    assert "settings|status|metrics|states|steps|reasons" in capsys.readouterr().err

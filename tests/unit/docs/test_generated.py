"""What is made of the code in the pages is what the code says; what is not, agrees with it."""

import re
from pathlib import Path
from typing import get_args

import pytest

from espha_operator.api.status import Phase
from espha_operator.status import checks
from espha_operator.status.reasons import Reason
from tools.docs.blocks import BLOCKS, filled
from tools.docs.cli import commands
from unit.docs.markdown import ROOT, name, pages
from unit.operator.samples import healthy

CONDITIONS = ROOT / "docs" / "reference" / "conditions.md"
RUN = "run .venv/bin/python -m tools.docs"


@pytest.mark.parametrize("page", pages(), ids=name)
def test_the_blocks_are_up_to_date(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert text == filled(text), RUN


def test_every_block_is_on_a_page() -> None:
    whole = "".join(page.read_text(encoding="utf-8") for page in pages())
    assert [block for block in BLOCKS if f"<!-- begin {block}:" not in whole] == []


def test_a_block_that_is_old_is_written_again() -> None:
    page = "a\n\n<!-- begin states: x -->\nold\n<!-- end states -->\n\nb\n"
    fresh = filled(page)
    assert "old" not in fresh
    assert "| `standby` |" in fresh
    assert filled(fresh) == fresh


def test_the_command_line_has_every_command_and_option() -> None:
    page = (ROOT / "docs" / "reference" / "cli.md").read_text(encoding="utf-8")
    for path, command in commands():
        assert f"## `{path}`" in page
        for option in (one for one in command.params if one.param_type_name == "option"):
            spelled = [*option.opts, *option.secondary_opts][0]
            assert option.hidden or option.name == "help" or spelled in page


def test_the_page_of_conditions_has_every_condition_and_reason() -> None:
    page = CONDITIONS.read_text(encoding="utf-8")
    named = set(re.findall(r"^\| `(\w+)` \|", page, re.MULTILINE))
    usual = {Reason.COMPLETE, Reason.MOVING, Reason.NOT_PAUSED, Reason.ENOUGH}
    unusual = {Reason.STARTING, Reason.ROLLING_OUT, Reason.PAUSED, Reason.LOW, Reason.CRITICAL}
    reasons = {str(one) for one in Reason if (not one.holds and one not in usual) or one in unusual}
    conditions = set(checks.judge(healthy(webhook="")))
    events = {"FailedOver", "TakenOver", "Diverged", "HandingOver"}
    assert named == conditions | reasons | set(get_args(Phase)) | events

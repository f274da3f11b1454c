"""What a process of an engine imports at its start; each of these would cost it half a second."""

import subprocess
import sys

import pytest

from chaos.here import ROOT

SLOW = ("PIL", "matplotlib", "pandas", "scipy", "sklearn")
KERNEL = """
from pathlib import Path
from espha.kernel import kernel_of
from espha.reader import read_project
kernel_of(read_project(Path("manifests/models/ha-project.xml").read_text()))
"""
WORKER = """
import espha.pipeline.daemon
from espha.pipeline.worker import spare_pandas
spare_pandas()
"""
ENGINE = """
import espha.engine.fork_server
import espha.engine.main
"""


@pytest.mark.parametrize(
    ("program", "slow"),
    [(KERNEL, ("numpy", "pyarrow", *SLOW)), (WORKER, SLOW), (ENGINE, SLOW)],
    ids=["kernel", "worker", "engine"],
)
def test_a_start_leaves_alone_what_it_does_not_need(program: str, slow: tuple[str, ...]) -> None:
    program += f"import sys\nprint(*(name for name in {slow} if name in sys.modules))\n"
    ran = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert ran.stdout.split() == []

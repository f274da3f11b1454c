"""Where the campaign's own processes find this checkout."""

import os
from pathlib import Path

ROOT = Path(__file__).parents[2]

ENVIRONMENT = {
    **os.environ,
    # First, so that a copy of the checkout runs its own code and not the installed one's.
    "PYTHONPATH": os.pathsep.join(
        [str(ROOT / "engine"), str(ROOT / "tests"), os.environ.get("PYTHONPATH", "")]
    ),
}

"""What the parts of the process share."""

from typing import Final

SECONDS: Final = 2.0
"""Processor time that one call may take."""

KEEP_SECONDS: Final = {"state": 4.0, "restore": 60.0}
"""Processor time that writing all variables, in the middle of the work, and putting them back may
take."""

MAX_ROWS: Final = 10_000
"""Most rows that one call may return."""

PLAIN: Final = (type(None), bool, int, float, str)
"""Values that JSON writes as they are."""


class Refused(Exception):  # noqa: N818 - a reason, not a fault of this program
    """What a script may not do or keep; the text is a sentence."""

"""When a cell of CSV stands in quotes: what Python and Catalyst have to agree on."""

import re
from typing import Final

BLANKS: Final = "".join(map(chr, range(33)))
"""What does not count around a cell: everything up to the blank."""

QUOTES_PATTERN: Final = r'[",\n]|\A[\x00-\x20]|[\x00-\x20\\]\Z'
"""What needs quotes: the comma, a quote, a line break, blanks at an end, a backslash there."""

NEEDS_QUOTES: Final = re.compile(QUOTES_PATTERN)
MAY_NEED_QUOTES: Final = re.compile(r'[",\\\x00-\x20]')
MAY_NEED_MORE_QUOTES: Final = re.compile(r'["\\\x00-\x20]')
"""The same but for the comma."""

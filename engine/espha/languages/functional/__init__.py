"""The function language of functional windows.

Functions are parsed to a tree (`parse`), compiled to Python functions (`compile`) and run in the
order of a context (`scope`). They are total: what has no result is null. They know no clock but
that of the order record, no randomness but what follows from the number of the source event, and
no zone but UTC.
"""

from espha.languages.functional.compile import FUNCTIONS
from espha.languages.functional.errors import FunctionError
from espha.languages.functional.fields import field_maker
from espha.languages.functional.frame import Frame
from espha.languages.functional.scope import Scope, Step, StepKind

__all__ = ["FUNCTIONS", "Frame", "FunctionError", "Scope", "Step", "StepKind", "field_maker"]

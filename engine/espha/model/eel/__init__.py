"""EEL, the expression language of models: text to typed Python functions, never to Python code."""

from espha.model.eel.errors import ExpressionError
from espha.model.eel.kinds import converter
from espha.model.eel.language import Expression, Language
from espha.model.eel.reading import read_expression, read_language
from espha.model.eel.udfs import Initialize, Udf

__all__ = [
    "Expression",
    "ExpressionError",
    "Initialize",
    "Language",
    "Udf",
    "converter",
    "read_expression",
    "read_language",
]

"""EEL, the expression language of models: text to typed Python functions, never to Python code."""

from espha.languages.eel.errors import ExpressionError
from espha.languages.eel.from_xml import read_expression, read_language
from espha.languages.eel.language import Expression, Language
from espha.languages.eel.udfs import Initialize, Udf
from espha.languages.eel.value_types import converter

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

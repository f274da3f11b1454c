"""Scripts of models, in Lua and Python, kept away from the engine and from the machine.

A script is a text that a model brings. It sees the rows that it is given, a clock and a random
generator that come from the order of the events, and its own variables; nothing else. Its
variables can be taken out as plain data and put back, so a script is a function of its state and
the event like every other part of a model.
"""

from espha.scripts.common import Answer, Call, Input, Options, Row, Script, ScriptError

__all__ = ["Answer", "Call", "Input", "Options", "Row", "Script", "ScriptError"]

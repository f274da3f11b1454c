"""What is wrong with a text of the function language."""


class FunctionError(ValueError):
    """A function, property or expression cannot be run; the message says why and what to do."""

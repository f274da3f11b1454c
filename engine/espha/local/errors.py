"""What ends a command of this room with a sentence instead of a traceback."""


class LocalError(Exception):
    """Something that the user has to know; the text is a sentence that says what to do."""

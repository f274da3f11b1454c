"""What can be done with a regex variable."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from espha.model.eel.errors import At


@dataclass(frozen=True, slots=True)
class Method:
    """One method.

    Attributes:
        takes: one letter an argument: n number, s string.
        gives: the kind of its result.
        apply: takes what the variable holds and the arguments; gives what the variable holds
            from now on, and the result.
        needed: how many arguments must be there.
        checks: refuses a constant first argument that cannot be used.
    """

    takes: str
    gives: str
    apply: Callable[..., tuple[Any, Any]]
    needed: int
    checks: Callable[[str, At], None] | None = None


METHODS: Final[dict[str, Method]] = {}

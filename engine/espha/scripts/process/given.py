"""The classes that scripts see in place of Python's, where time or chance would come in."""

import datetime
import random
import types
from collections.abc import Callable
from typing import Any, ClassVar


class Fixed:
    """What is there again, and the same, whenever a script is loaded."""


class Module(Fixed, types.SimpleNamespace):
    """A module as scripts see it."""


class Datetime(datetime.datetime):
    """A datetime whose clock is that of the event."""

    seconds: ClassVar[Callable[[], float]]

    @classmethod
    def now(cls, tz: datetime.tzinfo | None = None) -> "Datetime":
        """Return the moment of the event, in UTC."""
        found = cls.fromtimestamp(cls.seconds(), tz or datetime.UTC)
        return found if tz else found.replace(tzinfo=None)

    @classmethod
    def utcnow(cls) -> "Datetime":
        """Return the moment of the event."""
        return cls.now()

    @classmethod
    def today(cls) -> "Datetime":
        """Return the moment of the event."""
        return cls.now()


class Date(datetime.date):
    """A date whose today is that of the event."""

    @classmethod
    def today(cls) -> "Date":
        """Return the day of the event, in UTC."""
        found = Datetime.now()
        return cls(found.year, found.month, found.day)


class Random(random.Random):
    """A generator whose seed, if none is given, is that of the event."""

    derived: ClassVar[Callable[[], int]]

    def __init__(self, seed: Any = None) -> None:
        super().__init__(type(self).derived() if seed is None else seed)


Datetime.__name__, Date.__name__ = "datetime", "date"

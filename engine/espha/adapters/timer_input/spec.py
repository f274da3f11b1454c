"""Events at an interval."""

from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from espha.adapters.config import AdapterType, Part


class InputTimer(Part):
    """Events at an interval: a number, the time and a label, without any source."""

    interval: int = Field(
        ge=1,
        le=99_999_999,
        description="Units from one event to the next one; months and years: 1200 at most.",
    )
    unit: Literal["millisecond", "second", "minute", "hour", "day", "week", "month", "year"] = (
        Field("second", description="What the interval is counted in.")
    )
    base: (
        Annotated[
            str,
            StringConstraints(pattern=r"^[0-9]{4}-[0-9]{2}-[0-9]{2} [0-9]{2}:[0-9]{2}:[0-9]{2}$"),
        ]
        | None
    ) = Field(
        None,
        description="A moment of a tick, `YYYY-mm-dd HH:MM:SS` in UTC; the others are intervals "
        "away from it. Without it, the first start of the adapter.",
    )
    label: str = Field("", max_length=200, description="Text for the field that takes the label.")
    max_events: int | None = Field(
        None, ge=1, description="So many events are made; without it there is no end."
    )


ADAPTER = AdapterType("timer", "pub", InputTimer)

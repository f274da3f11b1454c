"""Java virtual machines: how much of a container's memory is their heap, and further options."""

from typing import Annotated, Any

from pydantic import Field

from espha_operator.api.base import OPERATOR_DEFAULT, Rule, rules, text
from espha_operator.api.quantities import Usual, amount, number

_MOST = 0.7
LARGEST_HEAP = "31Gi"
"""Above it, a JVM's references become longer."""
_OPTION = (
    r"^-(XX:[+-][A-Za-z0-9]+|XX:[A-Za-z0-9]+=[A-Za-z0-9._/%+-]+|X[a-z]+[A-Za-z0-9:=._,/%+-]*|"
    r"D[A-Za-z0-9._-]+=[A-Za-z0-9._/:,@%+-]*)$"
)

JvmOption = Annotated[
    str,
    text(
        _OPTION,
        "This is not an option of a JVM that can be given here; give -X… or -D… without blanks and "
        "quotation marks.",
        200,
    ),
]
JvmOptions = Annotated[
    list[JvmOption],
    Field(
        max_length=20,
        json_schema_extra={
            **OPERATOR_DEFAULT,
            **rules(
                (
                    r"self.all(one, !one.matches(r'^-(Xm[sx]|XX:[A-Za-z]*(RAM|HeapSize))'))",
                    "The heap is a field of its own: give heap instead of -Xmx, -Xms and the like.",
                )
            ),
        },
    ),
]


def heap_field(share: str) -> Any:
    """Return the field with the size of a heap.

    Args:
        share: what it is without it, for the description.
    """
    return Field(
        None,
        description=f"Heap of the Java virtual machine, for example 1Gi; at most 70 % of the "
        f"memory's limit. {share} when absent.",
    )


def heap_rules(usual: Usual, least: str) -> tuple[Rule, Rule]:
    """Return the rules for the object that has `heap` and `resources`.

    Args:
        usual: the resources where the user says nothing.
        least: the smallest heap that does.
    """
    limit = "self.resources.limits.memory"
    given = f"has(self.resources) && has(self.resources.limits) && has({limit})"
    allowed = f"({given} ? {number(limit)} : {float(amount(usual.limit))})"
    heap = number("self.heap")
    bounds = f"{heap} >= {float(amount(least))} && {heap} <= {float(amount(LARGEST_HEAP))}"
    return (
        (f"!has(self.heap) || {bounds}", f"heap must be from {least} to {LARGEST_HEAP}."),
        (
            f"!has(self.heap) || {heap} <= {_MOST} * {allowed}",
            "heap must be at most 70 % of resources.limits.memory "
            f"({usual.limit} when absent); the JVM needs the rest beside its heap.",
        ),
    )

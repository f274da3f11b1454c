"""What the keys and conditions of a join say: which side streams, and what identifies a result.

A side is *unique* when all of its key fields are in the conditions: a row of the other side then
has at most one partner there. With the right side unique the join is many-to-one, with the left
side unique one-to-many, else many-to-many.
"""

from collections.abc import Sequence
from typing import Literal, NamedTuple

from espha.model.project import Field, Part

JoinType = Literal["inner", "leftouter", "rightouter", "fullouter"]
Side = Literal["left", "right"]
Conditions = Sequence[tuple[str, str]]


class Column(Part):
    """Where the value of one field of the result comes from.

    Attributes:
        source: a field of the input, as l_name or r_name; empty: from the expression.
        otherwise: the field that has the value where the side of `source` has no row; empty: null.
        expression: EEL over l_ and r_ names, in one spelling; empty: from the source.
    """

    source: str = ""
    otherwise: str = ""
    expression: str = ""


class Relation(NamedTuple):
    """How many partners a row has.

    Attributes:
        left_unique: a row of the right side has at most one on the left.
        right_unique: a row of the left side has at most one on the right.
        equated: the conditions are the keys of both sides, each once, and nothing else.
    """

    left_unique: bool
    right_unique: bool
    equated: bool

    def facts(self, type_: JoinType) -> Side:
        """Return the side that streams; the other one is the table."""
        one_to_many = self.left_unique and not self.right_unique
        if type_ == "rightouter" or (type_ == "inner" and one_to_many):
            return "right"
        return "left"


def relation_of(conditions: Conditions, left: Sequence[Field], right: Sequence[Field]) -> Relation:
    """Return the relation of two schemas under conditions (left field, right field)."""
    keys = [[field.name for field in fields if field.key] for fields in (left, right)]
    given = [[pair[side] for pair in conditions] for side in (0, 1)]
    left_unique, right_unique = (
        set(key) <= set(names) for key, names in zip(keys, given, strict=True)
    )
    equated = all(sorted(key) == sorted(names) for key, names in zip(keys, given, strict=True))
    return Relation(left_unique, right_unique, equated)


def key_columns(
    type_: JoinType, conditions: Conditions, left: Sequence[Field], right: Sequence[Field]
) -> list[Column]:
    """Return the fields that identify a result.

    - The key of the streaming side, when each of its rows has at most one partner and every
      result has a row of it. That is the left key for many-to-one and one-to-one (inner,
      leftouter), the right key for one-to-many (inner, rightouter) and rightouter one-to-one.
    - fullouter on equal keys: the left key; where there is no left row, its equal on the right.
    - Else the keys of both sides, left first; those of a side without a row are null.
    """
    relation = relation_of(conditions, left, right)
    lefts = [Column(source=f"l_{field.name}") for field in left if field.key]
    rights = [Column(source=f"r_{field.name}") for field in right if field.key]
    if relation.equated and type_ == "fullouter":
        equal = {f"l_{one}": f"r_{two}" for one, two in conditions}
        return [Column(source=key.source, otherwise=equal[key.source]) for key in lefts]
    if relation.right_unique and type_ in {"inner", "leftouter"}:
        return lefts
    if relation.left_unique and type_ in {"inner", "rightouter"}:
        return rights
    return lefts + rights

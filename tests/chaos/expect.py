"""What models must publish, from their inputs and the order in which these were taken."""

from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any

_KEPT_MS = 3_000


def expect_two(
    order: Sequence[Mapping[str, Any]], inputs: Mapping[str, Sequence[str]]
) -> list[str]:
    """Compute the outputs: each row when it comes, and once more when it is three seconds old.

    Args:
        order: the order log; its clock is the only one that counts.
        inputs: texts of each input topic, by offset.
    """
    outputs: list[str] = []
    kept: deque[tuple[int, str]] = deque()
    for record in order:
        if not record["outputs"]:
            continue
        clock = record["clock"]
        while kept and kept[0][0] + _KEPT_MS <= clock:
            outputs.append(f"D,R, {kept.popleft()[1]}")
        for topic, start, end in record["inputs"]:
            for text in inputs[topic][start:end]:
                row = text.removeprefix("I,N,")
                outputs.append(f"I,N, {row}")
                kept.append((clock, row))
    return outputs


def expect_plain(
    order: Sequence[Mapping[str, Any]], inputs: Mapping[str, Sequence[str]]
) -> list[str]:
    """Compute the outputs: each row, as often as the order log takes it."""
    return [
        f"I,N, {text.removeprefix('I,N,')}"
        for record in order
        for topic, start, end in record["inputs"]
        for text in inputs[topic][start:end]
    ]


def expect_large(
    order: Sequence[Mapping[str, Any]], inputs: Mapping[str, Sequence[str]]
) -> list[str]:
    """Compute the outputs: every tenth row, by its number."""
    rows = (
        text.removeprefix("P,N,")
        for record in order
        for topic, start, end in record["inputs"]
        for text in inputs[topic][start:end]
    )
    return [f"P,N, {row}" for row in rows if int(row.split(",")[1]) % 10 == 0]


def expect_join(
    order: Sequence[Mapping[str, Any]], inputs: Mapping[str, Sequence[str]]
) -> list[str]:
    """Compute the outputs: each order, with the price that it wants if that is younger than 3 s.

    Args:
        order: the order log; its clock is the only one that counts.
        inputs: texts of each input topic, by offset; orders are those with even ids.
    """
    outputs: list[str] = []
    prices: dict[str, tuple[int, str]] = {}
    for record in order:
        clock = record["clock"]
        prices = {id_: kept for id_, kept in prices.items() if kept[0] + _KEPT_MS > clock}
        for topic, start, end in record["inputs"]:
            for text in inputs[topic][start:end]:
                id_, value, stamp = text.removeprefix("I,N,").split(",")
                if int(id_) % 2:
                    prices[id_] = clock, value
                else:
                    price = prices.get(value, (0, ""))[1]
                    outputs.append(f"I,N, {id_},{value},{stamp},{price}")
    return outputs

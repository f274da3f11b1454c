"""A note of each commit that Kafka acknowledged, for those who check that none is ever lost."""

import json
import os
from collections.abc import Callable
from pathlib import Path

from espha.protocol.order import OrderRecord


def acknowledgements(path: Path | None) -> Callable[[OrderRecord], None]:
    """Return what notes an order record's commit, as one line of JSON appended to a file.

    The line outlives this process, also when that is killed right behind it. No path: no notes.

    Raises:
        OSError: the file cannot be opened.
    """
    if path is None:
        return lambda record: None
    descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o644)

    def note(record: OrderRecord) -> None:
        line = {"sequence": record.sequence, "digest": record.digest, "epoch": record.epoch}
        os.write(descriptor, json.dumps(line).encode() + b"\n")

    return note

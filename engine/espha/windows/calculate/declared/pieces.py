"""What the transforms of pieces of a signal have in common."""

from collections.abc import Mapping
from typing import Final

from espha.windows.calculate.contract import Parameter, Role, Settings

MAX_PIECE: Final = 65_536
WINDOW_TYPES: Final = (1, 2, 3, 4, 5, 6, 7, 10, 11, 12, 13, 14, 15, 16)

INPUTS: Final = {
    "input": Role(note="the signal"),
    "timeId": Role("any", note="when the sample was taken"),
}
PIECES: Final = {
    "windowLength": Parameter(64, 1, MAX_PIECE, note="samples in a piece"),
    "windowType": Parameter(12, 1, 16, note="the weights of a piece, see below"),
    "windowParam": Parameter(-1.0, -1, 1000, note="shapes some of them; -1: the usual shape"),
    "overlap": Parameter(32, 0, MAX_PIECE, note="samples that a piece shares with the next"),
}


def check_pieces(settings: Settings, counts: Mapping[str, int]) -> str:
    """Refuse pieces that do not move on, and weights that there are none of."""
    if int(settings["overlap"]) >= int(settings["windowLength"]):
        return "overlap must be less than windowLength"
    if settings["windowType"] not in WINDOW_TYPES:
        return f"windowType must be one of {', '.join(map(str, WINDOW_TYPES))}"
    return ""

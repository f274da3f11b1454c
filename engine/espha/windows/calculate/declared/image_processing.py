"""ImageProcessing: images turned, cut and scaled."""

from collections.abc import Mapping
from typing import Final

from espha.windows.calculate.contract import Algorithm, Parameter, Result, Role, Settings

MAX_SIDE: Final = 8192
NO_FLIP: Final = -1000
"""What preFlip is where there is none."""
FUNCTIONS: Final = ("resize", "crop", "flip", "addConstant")
PLACES: Final = ("x", "y", "width", "height", "outputWidth", "outputHeight")
"""Parameters that can come from a field instead."""


def _check(settings: Settings, counts: Mapping[str, int]) -> str:
    function = settings["function"]
    if not function:
        return f"ImageProcessing needs the parameter function: {', '.join(FUNCTIONS)}"
    sides = ("width", "height") if function in {"resize", "crop"} else ()
    missing = [side for side in sides if not settings[side] and not counts[side]]
    return f"{function} needs the parameter {' and '.join(missing)}" if missing else ""


def _pixels(note: str) -> Parameter:
    return Parameter(0, 0, MAX_SIDE, note=note)


ALGORITHM = Algorithm(
    name="ImageProcessing",
    code="images:ImageProcessing",
    inputs={
        "imageInput": Role("blob", note="an image in PNG, JPEG or BMP"),
        **dict.fromkeys(PLACES, Role(needed=False, note="instead of the parameter")),
    },
    parameters={
        "function": Parameter("", choices=FUNCTIONS),
        "type": Parameter(0.0, -1, 1, note="flip: 0 upside down, 1 left to right, -1 both"),
        "value": Parameter(0.0, -255, 255, note="addConstant: what is added to all channels"),
        "x": _pixels("crop: columns left out on the left"),
        "y": _pixels("crop: rows left out at the top"),
        "width": _pixels("resize, crop: columns of the result"),
        "height": _pixels("resize, crop: rows of the result"),
        "outputWidth": _pixels("crop: columns after scaling the result"),
        "outputHeight": _pixels("crop: rows after scaling the result"),
        "preFlip": Parameter(NO_FLIP, NO_FLIP, 1, note="a type of flip, before anything else"),
    },
    results={"imageOutput": Result("blob", note="an image in PNG")},
    check=_check,
)

"""Calculate algorithm ImageProcessing.

An image is decoded by Pillow and encoded by `zlib`: a decoder gives the same pixels everywhere,
but Pillow's own compression depends on the processor, and replicas must agree on every byte.
"""

import struct
import zlib
from collections.abc import Mapping, Sequence
from io import BytesIO
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from espha.model.events import BadRecord
from espha.windows.calculate.declared.image_processing import MAX_SIDE, NO_FLIP, PLACES

Rows = Sequence[Sequence[Any]]
Pixels = NDArray[np.uint8]
"""Rows, columns, channels: one for grey, three for red, green and blue."""

MAX_PIXELS: Final = 2**23
"""Of an image, before and after; 3,840 x 2,160 are fewer."""
FORMATS: Final = ("PNG", "JPEG", "BMP")
_SIGNATURE: Final = b"\x89PNG\r\n\x1a\n"
_GREY, _COLOURS = 0, 2


class ImageProcessing:
    """Applies a function to each image."""

    def __init__(self, settings: Mapping[str, Any], wanted: Sequence[str]) -> None:
        self._settings = dict(settings)
        self._function = str(settings["function"])
        self._wanted = wanted

    def observe(self, values: tuple[Any, ...]) -> Rows:
        """Take an image; return one row.

        Raises:
            BadRecord: it is no image, or has no such part.
        """
        blob, *places = values
        if blob is None:
            return ([None for _ in self._wanted],)
        settings = dict(self._settings)
        for name, place in zip(PLACES, places, strict=True):
            if place is not None:
                settings[name] = int(min(max(place, -1), MAX_SIDE + 1))
        pixels = decode(blob)
        if settings["preFlip"] != NO_FLIP:
            pixels = _flip(pixels, settings["preFlip"])
        result = encode(self._apply(pixels, settings))
        return ([result for _ in self._wanted],)

    def _apply(self, pixels: Pixels, settings: Mapping[str, Any]) -> Pixels:
        if self._function == "flip":
            return _flip(pixels, settings["type"])
        if self._function == "addConstant":
            return _rounded(pixels + settings["value"])
        if self._function == "resize":
            return _resized(pixels, settings["width"], settings["height"])
        part = _cut(pixels, *(settings[name] for name in ("x", "y", "width", "height")))
        sides = settings["outputWidth"], settings["outputHeight"]
        return _resized(part, *sides) if all(sides) else part

    def state(self) -> Any:
        """Return nothing: an image says all."""
        return None

    def restore(self, state: Any) -> None:
        """Do nothing."""


def decode(blob: bytes) -> Pixels:
    """Return the pixels of an image.

    Raises:
        BadRecord: it is none, or too large.
    """
    try:
        image = Image.open(BytesIO(blob), formats=FORMATS)
        if image.width * image.height <= MAX_PIXELS:
            pixels = np.asarray(image.convert("L" if image.mode in {"1", "L"} else "RGB"))
            return pixels.reshape(*pixels.shape[:2], -1)
    except Exception:  # a decoder raises whatever it trips over
        raise BadRecord(f"the blob is not a whole image in {', '.join(FORMATS)}") from None
    raise BadRecord(f"the image has {image.width} x {image.height} pixels, above {MAX_PIXELS}")


def encode(pixels: Pixels) -> bytes:
    """Return an image in PNG."""
    height, width, channels = pixels.shape
    colour = _GREY if channels == 1 else _COLOURS
    head = struct.pack(">IIBBBBB", width, height, 8, colour, 0, 0, 0)
    # each row begins with the number of its filter, none
    lines = np.zeros((height, 1 + width * channels), dtype=np.uint8)
    lines[:, 1:] = pixels.reshape(height, width * channels)
    chunks = ((b"IHDR", head), (b"IDAT", zlib.compress(lines.tobytes(), 6)), (b"IEND", b""))
    return _SIGNATURE + b"".join(
        struct.pack(">I", len(content)) + kind + content
        + struct.pack(">I", zlib.crc32(kind + content))
        for kind, content in chunks
    )  # fmt: skip


def _flip(pixels: Pixels, type_: float) -> Pixels:
    if type_ <= 0:
        pixels = pixels[::-1]
    return pixels[:, ::-1] if type_ else pixels


def _cut(pixels: Pixels, x: int, y: int, width: int, height: int) -> Pixels:
    rows, columns = pixels.shape[:2]
    if min(x, y) < 0 or min(width, height) < 1 or x + width > columns or y + height > rows:
        part = f"{width} x {height} pixels from {x}, {y}"
        raise BadRecord(f"an image of {columns} x {rows} pixels has no part of {part}")
    return pixels[y : y + height, x : x + width]


def _resized(pixels: Pixels, width: int, height: int) -> Pixels:
    """Scale an image: each pixel is made of the four next to its place, by their nearness."""
    if min(width, height) < 1 or width * height > MAX_PIXELS:
        raise BadRecord(f"an image of {width} x {height} pixels; it can have 1 to {MAX_PIXELS}")
    if pixels.shape[:2] == (height, width):
        return pixels
    upper, lower, down = _between(pixels.shape[0], height)
    left, right, along = _between(pixels.shape[1], width)
    down, along = down[:, None, None], along[:, None]
    rows = pixels[upper] * (1 - down) + pixels[lower] * down
    return _rounded(rows[:, left] * (1 - along) + rows[:, right] * along)


def _between(
    count: int, wanted: int
) -> tuple[NDArray[np.intp], NDArray[np.intp], NDArray[np.float64]]:
    """Return for each place of a scaled row its two neighbours, and how near the second is."""
    places = (np.arange(wanted) + 0.5) * (count / wanted) - 0.5
    places = np.clip(places, 0, count - 1)
    first = np.floor(places).astype(np.intp)
    return first, np.minimum(first + 1, count - 1), places - first


def _rounded(values: NDArray[np.float64]) -> Pixels:
    return np.floor(np.clip(values, 0, 255) + 0.5).astype(np.uint8)

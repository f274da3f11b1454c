"""ImageProcessing: what leaves is what the pixels say, and no blob ends an engine."""

from io import BytesIO
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from PIL import Image

from espha.model import ModelError
from espha.model.events import BadRecord
from espha.windows.calculate.declared import ALGORITHMS
from espha.windows.calculate.images import ImageProcessing, decode, encode
from support.calculate import Run, project

USUAL = {
    name: parameter.default for name, parameter in ALGORITHMS["ImageProcessing"].parameters.items()
}
shapes = st.tuples(st.integers(1, 9), st.integers(1, 9), st.sampled_from([1, 3]))
images = shapes.flatmap(lambda shape: arrays(np.uint8, shape))
PIXELS = np.arange(4 * 5 * 3, dtype=np.uint8).reshape(4, 5, 3)


def blob(pixels: Any, format_: str = "PNG") -> bytes:
    stream = BytesIO()
    Image.fromarray(pixels.squeeze(2) if pixels.shape[2] == 1 else pixels).save(stream, format_)
    return stream.getvalue()


def processed(content: Any, *places: Any, **changes: Any) -> Any:
    """Return the pixels that a function makes, as Pillow reads them."""
    places = places or (None,) * 6
    run = ImageProcessing({**USUAL, **changes}, ["imageOutput"])
    ((found,),) = run.observe((content if isinstance(content, bytes) else blob(content), *places))
    return np.asarray(Image.open(BytesIO(found)))


@given(images)
def test_pillow_reads_what_is_written_and_the_other_way_round(pixels: Any) -> None:
    read = np.asarray(Image.open(BytesIO(encode(pixels))))
    assert (read.reshape(pixels.shape) == pixels).all()
    assert (decode(encode(pixels)) == pixels).all()
    assert (decode(blob(pixels)) == pixels).all()


def test_flips() -> None:
    assert (processed(PIXELS, function="flip", type=0.0) == PIXELS[::-1]).all()
    assert (processed(PIXELS, function="flip", type=1.0) == PIXELS[:, ::-1]).all()
    assert (processed(PIXELS, function="flip", type=-1.0) == PIXELS[::-1, ::-1]).all()
    twice = processed(PIXELS, function="flip", type=1.0, preFlip=1)
    assert (twice == PIXELS).all()


def test_a_part_is_cut_out_where_parameters_or_fields_say() -> None:
    box = {"x": 1, "y": 2, "width": 3, "height": 2}
    assert (processed(PIXELS, function="crop", **box) == PIXELS[2:4, 1:4]).all()
    found = processed(PIXELS, 0.0, None, 2, None, None, None, function="crop", **box)
    assert (found == PIXELS[2:4, 0:2]).all()
    scaled = processed(PIXELS, function="crop", **box, outputWidth=6, outputHeight=4)
    assert scaled.shape == (4, 6, 3)


@settings(max_examples=50)
@given(images, st.integers(1, 12), st.integers(1, 12))
def test_scaling_is_linear_between_neighbours(pixels: Any, width: int, height: int) -> None:
    found = processed(pixels, function="resize", width=width, height=height)
    rows, columns, channels = pixels.shape
    found = found.reshape(height, width, channels)
    for i in range(height):
        for j in range(width):
            y = min(max((i + 0.5) * rows / height - 0.5, 0), rows - 1)
            x = min(max((j + 0.5) * columns / width - 0.5, 0), columns - 1)
            parts = [
                (1 - abs(y - a)) * (1 - abs(x - b)) * pixels[a, b].astype(float)
                for a in range(rows)
                for b in range(columns)
                if abs(y - a) < 1 and abs(x - b) < 1
            ]
            assert found[i, j] == pytest.approx(sum(parts), abs=0.5 + 1e-9)


def test_a_constant_stays_within_the_range() -> None:
    found = processed(PIXELS, function="addConstant", value=250.0)
    assert (found == np.minimum(PIXELS.astype(int) + 250, 255)).all()
    found = processed(PIXELS, function="addConstant", value=-2.6)
    assert (found == np.maximum(np.floor(PIXELS - 2.6 + 0.5), 0)).all()


def test_jpeg_palettes_and_transparency_are_read_as_colours() -> None:
    plain = np.full((8, 8, 3), 90, dtype=np.uint8)
    assert decode(blob(plain, "JPEG")).tolist() == plain.tolist()
    assert decode(blob(plain, "BMP")).tolist() == plain.tolist()
    for mode, channels in {"P": 3, "RGBA": 3, "1": 1, "L": 1}.items():
        stream = BytesIO()
        Image.fromarray(plain).convert(mode).save(stream, "PNG")
        assert decode(stream.getvalue()).shape == (8, 8, channels)


@given(st.binary(max_size=40), st.integers(0, 80), st.integers(0, 255))
def test_what_is_no_image_is_a_bad_record(noise: bytes, place: int, byte: int) -> None:
    good = blob(PIXELS)
    damaged = good[: place % len(good)] + bytes([byte]) + good[place % len(good) + 1 :]
    for content in (noise, b"\x89PNG\r\n\x1a\n" + noise, good[:place], damaged):
        try:
            assert decode(content).ndim == 3
        except BadRecord as error:
            assert "not a whole image" in error.reason or "pixels" in error.reason


def test_images_that_are_too_large_are_bad_records() -> None:
    large = blob(np.zeros((1, 2**15, 1), dtype=np.uint8))
    with pytest.raises(BadRecord, match="has no part of"):
        processed(PIXELS, function="crop", x=3, width=3, height=1)
    with pytest.raises(BadRecord, match="above 8388608"):
        decode(blob(np.zeros((4096, 2049, 1), dtype=np.uint8)))
    with pytest.raises(BadRecord, match="can have 1 to 8388608"):
        processed(large, function="resize", width=8192, height=8192)
    with pytest.raises(BadRecord, match="can have 1 to"):
        processed(PIXELS, None, None, float("inf"), 2**40, None, None, function="resize")


def test_a_window_gives_null_for_null_and_refuses_what_is_no_image() -> None:
    run = Run("ImageProcessing", function="flip", type=0)
    assert run.row() == {"imageOutput": None}
    (row,) = run.rows(b=blob(PIXELS))
    assert decode(row["imageOutput"]).tolist() == PIXELS[::-1].tolist()


@pytest.mark.parametrize(
    ("parameters", "reason"),
    [
        ({}, "needs the parameter function: resize, crop, flip, addConstant"),
        ({"function": "contours"}, "function is 'contours'; give resize or crop"),
        ({"function": "resize", "width": 5}, "resize needs the parameter height"),
        ({"function": "crop"}, "crop needs the parameter width and height"),
    ],
)
def test_functions_that_cannot_be_are_refused(parameters: dict[str, Any], reason: str) -> None:
    with pytest.raises(ModelError, match=reason):
        project("ImageProcessing", **parameters)

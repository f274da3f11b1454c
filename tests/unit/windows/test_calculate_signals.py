"""STFT, Cepstrum and SST against what others compute, and figures that SAS documents."""

import cmath
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import signal

from espha.model import ModelError
from espha.windows.calculate.spectra import Cepstrum, Stft
from espha.windows.calculate.subspace import SubspaceTracking, eigen
from espha.windows.calculate.tapers import taper
from support.calculate import Run, project

USUAL: dict[int, Any] = {
    1: "bartlett", 2: "bohman", 3: ("chebwin", 100), 5: ("kaiser", 0.5), 6: "parzen", 7: "boxcar",
    10: ("tukey", 0.5), 11: "barthann", 12: "blackmanharris", 13: "blackman", 14: "hamming",
    15: "hann", 16: "flattop",
}  # fmt: skip
SHAPED: dict[int, Any] = {3: ("chebwin", 60), 5: ("kaiser", 8.6), 10: ("tukey", 0.25)}


def scipys(name: Any, length: int) -> Any:
    return signal.get_window(name, length, fftbins=False)


@pytest.mark.parametrize("length", [1, 2, 3, 8, 65, 500])
def test_the_weights_are_those_of_scipy(length: int) -> None:
    for type_, name in USUAL.items():
        assert taper(type_, -1.0, length) == pytest.approx(scipys(name, length), abs=1e-12)
    for type_, name in SHAPED.items():
        found = taper(type_, float(name[1]), length)
        assert found == pytest.approx(scipys(name, length), abs=1e-12)
    width = max(length - 1, 1) / 2 / 2.5
    assert taper(4, -1.0, length) == pytest.approx(scipys(("gaussian", width), length))


def stft(**changes: Any) -> dict[str, Any]:
    return {
        "windowLength": 4, "overlap": 2, "windowType": 7, "windowParam": -1.0, "fftLength": 4,
        "binsInSchema": 4, **changes,
    }  # fmt: skip


def transform(values: list[float], size: int) -> list[complex]:
    turns = range(size)
    return [
        sum(v * cmath.exp(-2j * math.pi * k * t / size) for t, v in enumerate(values))
        for k in turns
    ]


@settings(max_examples=50)
@given(
    st.lists(st.floats(-100, 100), min_size=10, max_size=30),
    st.integers(2, 9),
    st.integers(0, 8),
    st.integers(0, 5),
)
def test_a_spectrum_is_the_sum_of_its_definition(
    values: list[float], length: int, overlap: int, zeros: int
) -> None:
    overlap, size = min(overlap, length - 1), length + zeros
    names = ["timeIdOut", "keyOut", "binOut", "powerOut", "phaseOut"]
    options = {"windowLength": length, "overlap": overlap, "windowType": 14}
    run = Stft(stft(**options, fftLength=size, binsInSchema=size), names)
    rows = [list(row) for time, value in enumerate(values) for row in run.observe((value, time))]
    expected = []
    for start in range(0, len(values) - length + 1, length - overlap):
        weights = taper(14, -1.0, length)
        piece = [v * w for v, w in zip(values[start:], weights, strict=False)]
        expected += [
            (start + length - 1, bin_, found) for bin_, found in enumerate(transform(piece, size))
        ]
    assert [row[:3] for row in rows] == [
        [time, key, bin_] for key, (time, bin_, _) in enumerate(expected)
    ]
    for (*_, power, phase), (_, _, found) in zip(rows, expected, strict=True):
        assert power == pytest.approx(abs(found) ** 2, rel=1e-9, abs=1e-9)
        turned = math.sqrt(power) * cmath.exp(1j * phase)
        assert abs(turned - found) == pytest.approx(0, abs=1e-6)


def test_bins_are_rows_or_lists() -> None:
    values = [1.0, 2.0, 3.0, 4.0]
    rows = Stft(stft(binsInSchema=2), ["binOut", "powerOut", "phaseOut"])
    assert [rows.observe((value, 0)) for value in values][:3] == [(), (), ()]
    lists = Stft(stft(binsInSchema=2), ["timeIdOut", "powerListOut", "phaseListOut"])
    ((time, powers, phases),) = [
        row for at, value in enumerate(values) for row in lists.observe((value, at))
    ]
    assert (time, powers) == (3, pytest.approx([100.0, 8.0]))
    assert phases == pytest.approx([0.0, 3 * math.pi / 4])


def test_a_null_in_a_piece_leaves_its_results_null() -> None:
    run = Run("STFT", windowLength=2, overlap=0, fftLength=2, binsInSchema=2)
    assert run.rows(1.0) == []
    assert [row["powerOut"] for row in run.rows(None)] == [None, None]
    assert [row["binOut"] for row in run.rows(1.0) + run.rows(1.0)] == [0, 1]


def test_the_figures_that_sas_shows_for_a_chirp() -> None:
    """esp-studio-examples, Analytics/short_time_fourier_transform: the signal begins at row 1."""
    names = ["timeIdOut", "binOut", "powerOut", "phaseOut"]
    options = {"windowLength": 64, "overlap": 32, "windowType": 12}
    run = Stft(stft(**options, fftLength=256, binsInSchema=256), names)
    values = [math.cos(number**2 * math.pi / 2046) for number in range(1, 1023)]
    rows = [list(row) for time, value in enumerate(values) for row in run.observe((value, time))]
    assert len(rows) == 30 * 256
    shown = [  # img/result_file.png, lines 2 to 6, 17 and 27
        (0, 1.788529, 3.141593),
        (1, 9.256233, 1.256636),
        (2, 28.921031, 0.282091),
        (3, 53.744526, -0.559502),
        (4, 75.328623, -1.366659),
        (15, 0.429326, 1.867018),
        (25, 8.33163e-07, 1.071654),
    ]
    for place, power, phase in shown:
        assert rows[place][:2] == [63, place]
        assert rows[place][2] == pytest.approx(power, rel=1e-6, abs=5e-7)
        assert rows[place][3] == pytest.approx(phase, abs=5e-7)
    last = [-0.890021, -0.026339, 0.832751, 2.534544, -0.949376]  # img/w_calculate.png, from 255
    assert [row[:2] for row in rows[-1:-6:-1]] == [[991, place] for place in range(255, 250, -1)]
    assert [row[3] for row in rows[-1:-6:-1]] == pytest.approx(last, abs=5e-7)


def test_lists_go_to_arrays_and_rows_keep_the_opcode() -> None:
    run = Run(
        "STFT", windowLength=2, overlap=1, fftLength=2, binsInSchema=2, windowType=7,
        inputs={"input": "x", "timeId": "id"},
        outputs={"timeIdOut": "t", "powerListOut": "p[1-3]"},
        schema="t*:int64,p:array(dbl)",
    )  # fmt: skip
    run.rows(1.0)
    assert run.rows(2.0) == [{"t": 2, "p": (9.0, 1.0, None)}]
    assert not run.project.windows["q/out"].upserts  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("parameters", "reason"),
    [
        ({"overlap": 64}, "overlap must be less than windowLength"),
        ({"windowLength": 300}, "fftLength must be at least windowLength"),
        ({"fftLength": 128}, "binsInSchema must be at most fftLength"),
        ({"windowType": 8}, "windowType must be one of 1, 2"),
    ],
)
def test_pieces_that_cannot_be_are_refused(parameters: dict[str, Any], reason: str) -> None:
    with pytest.raises(ModelError, match=reason):
        project("STFT", **parameters)


def cepstrum(values: list[float], **changes: Any) -> list[float] | None:
    options = stft(windowLength=len(values), overlap=0, complexCepstrum=False, **changes)
    run = Cepstrum(options, ["cepstrumListOut"])
    ((found,),) = [row for value in values for row in run.observe((value, 0))]
    result: list[float] | None = found
    return result


VALUES = np.random.default_rng(5).normal(size=32).tolist()


def test_a_real_cepstrum_is_that_of_the_magnitudes() -> None:
    expected = np.fft.ifft(np.log(np.abs(np.fft.fft(VALUES)))).real
    assert cepstrum(VALUES) == pytest.approx(expected)


def test_a_complex_cepstrum_has_the_phase_without_its_delay() -> None:
    spectrum = np.fft.fft(VALUES)
    phase = np.unwrap(np.angle(spectrum))
    phase -= np.pi * round(phase[16] / np.pi) * np.arange(32) / 16
    expected = np.fft.ifft(np.log(np.abs(spectrum)) + 1j * phase).real
    options = stft(windowLength=32, overlap=0, complexCepstrum=True)
    run = Cepstrum(options, ["cepstrumListOut"])
    ((found,),) = [row for value in VALUES for row in run.observe((value, 0))]
    assert found == pytest.approx(expected)
    # an echo shows where it is: x[t] + x[t - 3] / 2, around the circle
    echo = [1.0, 0, 0, 0.5, *[0.0] * 12]
    assert cepstrum(echo)[3] == pytest.approx(0.25, abs=1e-3)  # type: ignore[index]


def test_a_signal_without_a_frequency_has_no_cepstrum() -> None:
    assert cepstrum([1.0, 1.0, 1.0, 1.0]) is None


@settings(max_examples=40)
@given(st.integers(1, 12), st.integers(0, 2**32))
def test_eigenvectors_are_those_of_lapack(size: int, seed: int) -> None:
    factor = np.random.default_rng(seed).normal(size=(size, size + 1))
    matrix = factor @ factor.T
    eigenvalues, vectors = eigen(matrix)
    assert eigenvalues == pytest.approx(np.linalg.eigvalsh(matrix)[::-1], abs=1e-12 * matrix.max())
    assert vectors.T * eigenvalues @ vectors == pytest.approx(matrix, abs=1e-12 * matrix.max())
    assert vectors @ vectors.T == pytest.approx(np.eye(size), abs=1e-12)
    assert all(row[np.abs(row).argmax()] > 0 for row in vectors)


def tracking(wanted: list[str], **changes: Any) -> SubspaceTracking:
    usual = {"meanForgetFactor": 1.0, "covForgetFactor": 1.0, "eigvalTolCumulative": 1.0}
    return SubspaceTracking({"maxPrincipal": 2, **usual, **changes}, wanted)


def test_a_subspace_is_that_of_the_weighted_covariance() -> None:
    wanted = ["numRankOut", "principalVecOut", "residualOut", "projAngleOut"]
    run = tracking(wanted, meanForgetFactor=0.75, covForgetFactor=0.5)
    vectors = np.random.default_rng(3).normal(size=(20, 4))
    covariance = np.zeros((4, 4))
    for count, vector in enumerate(vectors, start=1):
        weights = 0.75 ** np.arange(count)[::-1]
        away = vector - weights @ vectors[:count] / weights.sum()
        covariance = 0.5 * covariance + np.outer(away, away)
        ((rank, found, residual, angle),) = run.observe((tuple(vector.tolist()),))
    principal = np.linalg.eigh(covariance)[1].T[::-1][:2]
    inside = principal @ away
    assert rank == 2
    for place, row in enumerate(principal):
        expected = row * np.sign(row[np.abs(row).argmax()])
        assert found[4 * place : 4 * place + 4] == pytest.approx(expected)
    share = math.sqrt(max(0.0, 1 - inside @ inside / (away @ away)))
    assert residual == pytest.approx(share)
    assert math.sin(angle) == pytest.approx(share)


def test_the_rank_is_what_the_wanted_share_of_the_variance_needs() -> None:
    run = tracking(["numRankOut"], eigvalTolCumulative=0.9, maxPrincipal=3)
    assert run.observe(((1.0, 1.0, 1.0),)) == ([0],)  # nothing varies yet
    assert run.observe(((9.0, 1.0, 1.0),)) == ([1],)
    assert run.observe(((1.0, 8.0, 1.0),)) == ([2],)
    assert run.observe(((1.0, None, 1.0),)) == ([None],)  # no vector
    assert run.observe(((1.0, 2.0),)) == ([None],)  # an array of another length

"""Calculate algorithms that transform pieces of a signal: STFT and Cepstrum."""

import math
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from espha.windows.calculate.tapers import taper

Rows = Sequence[Sequence[Any]]
Array = NDArray[np.float64]


class _Pieces:
    """Cuts a signal into weighted pieces that overlap."""

    def __init__(self, settings: Mapping[str, Any]) -> None:
        self._length: int = settings["windowLength"]
        self._step: int = self._length - settings["overlap"]
        weights = taper(settings["windowType"], settings["windowParam"], self._length)
        self._weights = np.array(weights)
        self.samples: list[float | None] = []

    def add(self, sample: float | None) -> Array | None:
        """Return the piece that ends here; NaN is what a null makes of it; None: none ends."""
        self.samples.append(sample)
        if len(self.samples) < self._length:
            return None
        # None is NaN as a double.
        piece: Array = np.array(self.samples, dtype=np.float64) * self._weights
        del self.samples[: self._step]
        return piece


class Stft:
    """Short-time Fourier transform: power and phase by frequency.

    Power is the squared magnitude of the sum, without a scale, and phase its angle from -pi to pi.
    """

    def __init__(self, settings: Mapping[str, Any], wanted: Sequence[str]) -> None:
        self._pieces = _Pieces(settings)
        self._size: int = settings["fftLength"]
        self._bins: int = settings["binsInSchema"]
        self._wanted = wanted
        self._single = not {"keyOut", "binOut", "powerOut", "phaseOut"} & set(wanted)
        self._phases = any("phase" in name for name in wanted)
        self._key = 0

    def observe(self, values: tuple[Any, ...]) -> Rows:
        """Take one sample; return the rows of the piece that it ends."""
        sample, time = values
        piece = self._pieces.add(sample)
        if piece is None:
            return ()
        with np.errstate(all="ignore"):  # a power can be beyond doubles; then it is null
            power, phase = self._transform(piece)
        count = 1 if self._single else len(power)
        results: dict[str, Sequence[Any]] = {
            "timeIdOut": [time] * count,
            "keyOut": range(self._key, self._key + count),
            "binOut": range(count),
            "powerOut": power,
            "phaseOut": phase,
            "powerListOut": [power] * count,
            "phaseListOut": [phase] * count,
        }
        self._key += count
        columns = [results[name] for name in self._wanted]
        return [[column[place] for column in columns] for place in range(count)]

    def _transform(self, piece: Array) -> tuple[list[Any], list[Any]]:
        if not np.isfinite(piece).all():
            return [None] * self._bins, [None] * self._bins
        half = np.fft.rfft(piece, self._size)
        power = half.real**2 + half.imag**2
        phase = list(map(math.atan2, half.imag.tolist(), half.real.tolist()))
        # The signal is real: what lies above half the rate mirrors what lies below.
        beyond = self._size - len(half)
        powers = power.tolist() + power[beyond:0:-1].tolist()
        phases = phase + [-angle for angle in phase[beyond:0:-1]]
        return powers[: self._bins], phases[: self._bins]

    def state(self) -> Any:
        """Return the samples that the next pieces need, and the next key."""
        return (tuple(self._pieces.samples), self._key)

    def restore(self, state: Any) -> None:
        """Take over samples and key."""
        samples, self._key = state
        self._pieces.samples = list(samples)


class Cepstrum:
    """The inverse Fourier transform of the logarithm of a spectrum, real or complex."""

    def __init__(self, settings: Mapping[str, Any], wanted: Sequence[str]) -> None:
        self._pieces = _Pieces(settings)
        self._complex = bool(settings["complexCepstrum"])
        self._wanted = wanted

    def observe(self, values: tuple[Any, ...]) -> Rows:
        """Take one sample; return the row of the piece that it ends."""
        sample, time = values
        piece = self._pieces.add(sample)
        if piece is None:
            return ()
        with np.errstate(all="ignore"):
            results = {"timeIdOut": time, "cepstrumListOut": _cepstrum(piece, self._complex)}
        return ([results[name] for name in self._wanted],)

    def state(self) -> Any:
        """Return the samples that the next pieces need."""
        return tuple(self._pieces.samples)

    def restore(self, state: Any) -> None:
        """Take over samples."""
        self._pieces.samples = list(state)


def _cepstrum(piece: Array, with_phase: bool) -> list[float] | None:
    """Return a cepstrum; None: a frequency is missing from the signal, or a sample is."""
    if not np.isfinite(piece).all():
        return None
    size = len(piece)
    half = np.fft.rfft(piece)
    magnitudes = list(map(math.hypot, half.real.tolist(), half.imag.tolist()))
    if not min(magnitudes) > 0:
        return None
    logarithm = np.array([math.log(each) for each in magnitudes], dtype=np.complex128)
    if with_phase:
        angles = map(math.atan2, half.imag.tolist(), half.real.tolist())
        logarithm += 1j * np.array(_unwound(list(angles), size))
    result: list[float] = np.fft.irfft(logarithm, size).tolist()
    return result


def _unwound(angles: list[float], size: int) -> list[float]:
    """Return a phase without jumps of 2 pi, and without the part that a mere delay makes."""
    turns = 0
    result = [angles[0]]
    for before, angle in pairwise(angles):
        step = angle - before
        turns += (step < -math.pi) - (step > math.pi)
        result.append(angle + 2 * math.pi * turns)
    # At half the rate the phase of a real signal is a multiple of pi: its delay.
    middle = (size + 1) // 2
    at_middle = result[middle] if middle < len(result) else -result[size - middle]
    delay = round(at_middle / math.pi)
    return [angle - math.pi * delay * place / middle for place, angle in enumerate(result)]

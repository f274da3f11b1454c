"""Window functions: the weights that a piece of a signal is multiplied by before a transform.

All are symmetric. They are computed by `math` alone, value by value: NumPy picks its cosine and
its exponential by what the processor can do, so their last bits may differ between machines.
"""

import math
from collections.abc import Callable, Mapping
from typing import Final

import numpy as np

Weight = Callable[[float], float]


def _cosines(*factors: float) -> Weight:
    """Return a sum of cosines, of the place from 0 to 1."""

    def weight(place: float) -> float:
        terms = enumerate(factors)
        return math.fsum([
            (-1) ** order * factor * math.cos(2 * math.pi * order * place)
            for order, factor in terms
        ])  # fmt: skip

    return weight


def _bartlett(place: float) -> float:
    return 1 - abs(2 * place - 1)


def _bartlett_hann(place: float) -> float:
    return 0.62 - 0.48 * abs(place - 0.5) + 0.38 * math.cos(2 * math.pi * (place - 0.5))


def _bohman(place: float) -> float:
    away = min(abs(2 * place - 1), 1.0)
    return (1 - away) * math.cos(math.pi * away) + math.sin(math.pi * away) / math.pi


def _gaussian(width: float) -> Weight:
    return lambda place: math.exp(-0.5 * (width * (2 * place - 1)) ** 2)


def _tukey(share: float) -> Weight:
    def weight(place: float) -> float:
        edge = min(place, 1 - place)
        if share <= 0 or edge >= share / 2:
            return 1.0
        return 0.5 * (1 - math.cos(2 * math.pi * edge / share))

    return weight


def _bessel(x: float) -> float:
    """Return I0(x), by its series; all terms are positive."""
    total = term = 1.0
    order = 0
    while term > total * 1e-17:
        order += 1
        term *= (x / (2 * order)) ** 2
        total += term
    return total


def _kaiser(shape: float) -> Weight:
    top = _bessel(shape)
    return lambda place: _bessel(shape * math.sqrt(max(0.0, 1 - (2 * place - 1) ** 2))) / top


def _parzen(length: int) -> list[float]:
    result = []
    for place in range(length):
        away = abs(place - (length - 1) / 2) / (length / 2)
        inner = 1 - 6 * away**2 + 6 * away**3
        result.append(inner if away <= 0.5 else 2 * (1 - away) ** 3)
    return result


def _chebyshev(length: int, decibels: float) -> list[float]:
    """Return the Dolph-Chebyshev window: all side lobes lie that many decibels below."""
    order = length - 1
    base = math.cosh(math.acosh(10 ** (abs(decibels) / 20)) / order)
    spectrum = []
    for number in range(length):
        x = base * math.cos(math.pi * number / length)
        if abs(x) <= 1:
            value = math.cos(order * math.acos(x))
        else:
            value = math.cosh(order * math.acosh(abs(x))) * (-1 if x < 0 and order % 2 else 1)
        spectrum.append(value)
    if length % 2:
        raw = np.fft.fft(spectrum).real[: length // 2 + 1].tolist()
        whole = raw[:0:-1] + raw
    else:
        turned = [
            value
            * complex(math.cos(math.pi * number / length), math.sin(math.pi * number / length))
            for number, value in enumerate(spectrum)
        ]
        raw = np.fft.fft(turned).real[1 : length // 2 + 1].tolist()
        whole = raw[::-1] + raw
    top = max(whole)
    return [value / top for value in whole]


_PLAIN: Final[Mapping[int, Weight]] = {
    1: _bartlett,
    2: _bohman,
    7: lambda place: 1.0,
    11: _bartlett_hann,
    12: _cosines(0.35875, 0.48829, 0.14128, 0.01168),  # Blackman-Harris
    13: _cosines(0.42, 0.5, 0.08),  # Blackman
    14: _cosines(0.54, 0.46),  # Hamming
    15: _cosines(0.5, 0.5),  # Hann
    16: _cosines(0.21557895, 0.41663158, 0.277263158, 0.083578947, 0.006947368),  # flat top
}
_SHAPED: Final[Mapping[int, tuple[Callable[[float], Weight], float]]] = {
    4: (_gaussian, 2.5),
    5: (_kaiser, 0.5),
    10: (_tukey, 0.5),
}
_CHEBYSHEV, _DECIBELS = 3, 100.0
_PARZEN: Final = 6


def taper(type_: int, parameter: float, length: int) -> list[float]:
    """Return the weights of a window.

    Args:
        type_: its number, as in models.
        parameter: what shapes types 3, 4, 5 and 10; a negative one stands for the usual value.
        length: how many weights.
    """
    if length == 1:
        return [1.0]
    if type_ == _CHEBYSHEV:
        return _chebyshev(length, parameter if parameter > 0 else _DECIBELS)
    if type_ == _PARZEN:
        return _parzen(length)
    if type_ in _SHAPED:
        make, usual = _SHAPED[type_]
        weight = make(parameter if parameter >= 0 else usual)
    else:
        weight = _PLAIN[type_]
    # The second half is the first one: a window is symmetric to the last bit.
    half = [weight(place / (length - 1)) for place in range((length + 1) // 2)]
    return half + half[: length // 2][::-1]

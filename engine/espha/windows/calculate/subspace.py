"""Calculate algorithm SST: the directions in which several values vary together."""

import math
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from espha.windows.calculate.declared.sst import MAX_INPUTS

Rows = Sequence[Sequence[Any]]
Array = NDArray[np.float64]

_SWEEPS: Final = 40


class SubspaceTracking:
    """Follows mean and covariance of a vector, and the principal eigenvectors of the latter.

    What is older counts less, by the forgetting factor at each event: mean(t) is the mean of all
    vectors, weighted so, and C(t) = factor C(t-1) + d d', where d is the vector less its mean.
    """

    def __init__(self, settings: Mapping[str, Any], wanted: Sequence[str]) -> None:
        self._most: int = settings["maxPrincipal"]
        self._forget_mean: float = settings["meanForgetFactor"]
        self._forget: float = settings["covForgetFactor"]
        self._share: float = settings["eigvalTolCumulative"]
        self._wanted = wanted
        self._weight = 0.0
        self._mean: Array | None = None
        self._covariance: Array | None = None

    def observe(self, values: tuple[Any, ...]) -> Rows:
        """Take a vector; return one row."""
        results: dict[str, Any] = {}
        (vector,) = values
        fits = len(vector) <= MAX_INPUTS if self._mean is None else len(vector) == len(self._mean)
        if fits and None not in vector:
            with np.errstate(all="ignore"):
                results = self._follow(np.array(vector, dtype=np.float64))
        return ([results.get(name) for name in self._wanted],)

    def _follow(self, vector: Array) -> dict[str, Any]:
        size = len(vector)
        mean = vector if self._mean is None else self._mean
        covariance = np.zeros((size, size)) if self._covariance is None else self._covariance
        weight = self._weight * self._forget_mean + 1
        mean = mean + (vector - mean) / weight
        away = vector - mean
        covariance = covariance * self._forget + away[:, None] * away
        if not np.isfinite(covariance).all():
            return {}
        self._weight, self._mean, self._covariance = weight, mean, covariance
        eigenvalues, vectors = eigen(covariance)
        rank = self._rank(eigenvalues.tolist())
        principal = vectors[: min(self._most, size)]
        results: dict[str, Any] = {
            "numRankOut": rank,
            "eigenvaluesOut": eigenvalues.tolist(),
            "principalVecOut": principal.ravel().tolist() if rank else None,
        }
        length = _norm(away)
        if rank and length > 0:
            inside = [math.fsum((row * away).tolist()) for row in principal[:rank]]
            rest = away - sum(part * row for part, row in zip(inside, principal, strict=False))
            residual = _norm(rest)
            results["residualOut"] = residual / length
            results["projAngleOut"] = math.atan2(residual, math.hypot(*inside))
        return results

    def _rank(self, eigenvalues: list[float]) -> int:
        """Return how many eigenvectors make up the wanted share of the variance."""
        whole, total = math.fsum(eigenvalues), 0.0
        if not whole > 0:
            return 0
        most = min(self._most, len(eigenvalues))
        for number, eigenvalue in enumerate(eigenvalues[:most], start=1):
            total += eigenvalue
            if total >= self._share * whole:
                return number
        return most

    def state(self) -> Any:
        """Return mean and covariance."""
        if self._mean is None or self._covariance is None:
            return None
        return (self._weight, tuple(self._mean.tolist()), tuple(self._covariance.ravel().tolist()))

    def restore(self, state: Any) -> None:
        """Take over mean and covariance."""
        self._weight, self._mean, self._covariance = 0.0, None, None
        if state is not None:
            self._weight, mean, covariance = state
            self._mean = np.array(mean)
            self._covariance = np.array(covariance).reshape(len(mean), len(mean))


def _norm(vector: Array) -> float:
    return math.hypot(*vector.tolist())


def eigen(matrix: Array) -> tuple[Array, Array]:
    """Return the eigenvalues of a symmetric matrix, the greatest first, and their vectors as rows.

    Jacobi's method, several rotations at once. LAPACK would be faster for large matrices, but how
    it adds depends on the processor, and replicas must agree to the last bit; the operations here
    do not. The largest element of each vector is positive.
    """
    with np.errstate(all="ignore"):  # what an element that is zero already divides by
        return _jacobi(matrix)


def _jacobi(matrix: Array) -> tuple[Array, Array]:
    size = len(matrix)
    a, vectors = matrix.copy(), np.eye(size)
    near_zero = 1e-15 * float(np.abs(matrix).max())
    for _ in range(_SWEEPS):
        if float(np.abs(np.triu(a, 1)).max()) <= near_zero:
            break
        for p, q in _rounds(size):
            cosine, sine = _rotation(a[p, p], a[q, q], a[p, q])
            _turn(a, p, q, cosine, sine)
            _turn(a.T, p, q, cosine, sine)
            _turn(vectors, p, q, cosine, sine)
    eigenvalues = np.diag(a)
    order = np.argsort(-eigenvalues, kind="stable")
    vectors = vectors[order]
    largest = np.abs(vectors).argmax(axis=1)
    signs = np.where(vectors[np.arange(size), largest] < 0, -1.0, 1.0)
    return eigenvalues[order], vectors * signs[:, None]


@cache
def _rounds(size: int) -> list[tuple[NDArray[np.intp], NDArray[np.intp]]]:
    """Return all pairs of rows, in rounds in which no row occurs twice (as in a tournament)."""
    players = list(range(size + size % 2))
    result = []
    for _ in range(len(players) - 1):
        half = len(players) // 2
        pairs = zip(players[:half], reversed(players[half:]), strict=True)
        there = [(min(pair), max(pair)) for pair in pairs if max(pair) < size]
        result.append((np.array([p for p, _ in there]), np.array([q for _, q in there])))
        players = [players[0], players[-1], *players[1:-1]]
    return result


def _rotation(app: Array, aqq: Array, apq: Array) -> tuple[Array, Array]:
    """Return the cosines and sines of the rotations that make the elements `apq` zero."""
    theta = (aqq - app) / (2 * apq)
    tangent = np.copysign(1.0, theta) / (np.abs(theta) + np.sqrt(theta * theta + 1))
    tangent[apq == 0] = 0.0
    cosine = 1 / np.sqrt(tangent * tangent + 1)
    return cosine[:, None], (tangent * cosine)[:, None]


def _turn(
    rows: Array, p: NDArray[np.intp], q: NDArray[np.intp], cosine: Array, sine: Array
) -> None:
    first, second = rows[p], rows[q]
    rows[p] = cosine * first - sine * second
    rows[q] = sine * first + cosine * second

"""The algorithms of calculate windows: the one list of them.

A module here declares an algorithm (`ALGORITHM`, see `contract`), and nothing that computes: what
only reads models imports it. Reader, stages, reference and tests follow from the list.
"""

from collections.abc import Mapping
from importlib import import_module
from typing import Final, cast

from espha.windows.calculate.contract import Algorithm

_MODULES: Final = (
    "summary",
    "correlation",
    "segmented_correlation",
    "fit_stat",
    "roc",
    "histogram",
    "mrr",
    "change_detection",
    "distribution_fitting",
    "lag_monitor",
    "tutorial",
    "stft",
    "cepstrum",
    "sst",
    "tokenization",
    "tfidf",
    "text_vectorization",
    "image_processing",
)
"""In the order of the reference."""


def _declared(module: str) -> Algorithm:
    return cast(Algorithm, import_module(f"{__name__}.{module}").ALGORITHM)


ALGORITHMS: Final[Mapping[str, Algorithm]] = {
    algorithm.name: algorithm for algorithm in map(_declared, _MODULES)
}
"""By name."""

_BY_SPELLING: Final[Mapping[str, Algorithm]] = {
    name.lower(): algorithm
    for algorithm in ALGORITHMS.values()
    for name in (algorithm.name, *algorithm.aliases)
}


def find(name: str) -> Algorithm | None:
    """Return the algorithm that a model calls `name`; None: there is none."""
    return _BY_SPELLING.get(name.strip().lower())

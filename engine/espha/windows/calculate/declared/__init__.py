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


_TRAINED: Final = "its models come from train windows, which are not supported"
_UNSUPPORTED: Final[Mapping[str, str]] = {
    "audiofeaturecomputation": "audio is not supported",
    "transcription": "audio is not supported",
    "videoencoding": "video is not supported",
    "digitalfilter": "its filters are analytic stores, which are not supported",
    **dict.fromkeys(("kmeans", "dbscan", "tsne", "svm", "recommender"), _TRAINED),
    **dict.fromkeys(("linearregression", "logisticregression"), _TRAINED),
}
"""Algorithms of SAS ESP that there are not, and why; by their names in small letters."""


def missing(name: str) -> str:
    """Say why there is no algorithm that a model calls `name`."""
    reason = _UNSUPPORTED.get(name.strip().lower())
    if reason:
        return f"algorithm {name!r}: {reason}"
    return f"algorithm {name!r} is not one of: {', '.join(ALGORITHMS)}"

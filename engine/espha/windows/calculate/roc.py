"""The algorithm ROC: how well a probability foretells an event."""

from bisect import bisect_right
from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any

from espha.windows.shared.exact import Number

Rows = Sequence[Sequence[Number | None]]


class Roc:
    """How well a probability foretells an event, at each cutoff."""

    def __init__(self, settings: Mapping[str, Any], wanted: Sequence[str]) -> None:
        self._length: int = settings["windowLength"]
        self._event: str = str(settings["event"]).strip()
        self._interval: int = settings["reportInterval"]
        self._wanted = wanted
        steps = max(1, round(1 / settings["cutStep"]))
        self._cutoffs = [number / steps for number in range(steps)]
        self._window: deque[tuple[int, int] | None] = deque()
        # Events and other responses, by the highest cutoff that their probability reaches.
        self._counts = [[0] * len(self._cutoffs), [0] * len(self._cutoffs)]
        self._seen = 0

    def observe(self, values: tuple[Any, ...]) -> Rows:
        """Take a probability and a response; return a row for each cutoff."""
        probability, response = values
        self._seen += 1
        entry = None
        if probability is not None and response is not None and 0 <= probability <= 1:
            place = bisect_right(self._cutoffs, probability) - 1
            entry = (int(label(response) != self._event), place)
        self._count(entry, 1)
        if self._length:
            self._window.append(entry)
            if len(self._window) > self._length:
                self._count(self._window.popleft(), -1)
        return [] if self._seen % self._interval else self._rows()

    def _count(self, entry: tuple[int, int] | None, sign: int) -> None:
        if entry is not None:
            self._counts[entry[0]][entry[1]] += sign

    def _rows(self) -> Rows:
        events, others = self._counts
        shared = _ranks(events, others)
        rows = []
        hits = alarms = 0
        for number in reversed(range(len(self._cutoffs))):
            hits += events[number]
            alarms += others[number]
            results = _table(hits, alarms, sum(events), sum(others))
            results.update(shared, binIdOut=number, cutOffOut=self._cutoffs[number])
            rows.append(results)
        rows.reverse()
        best = max((row["ks2Out"] or 0 for row in rows), default=0)
        for row in rows:
            row["ksOut"] = None if row["ks2Out"] is None else float(row["ks2Out"] == best)
        return [[row[name] for name in self._wanted] for row in rows]

    def state(self) -> Any:
        """Return how many events there were, the window, and the counts."""
        return (self._seen, tuple(self._window), *(tuple(counts) for counts in self._counts))

    def restore(self, state: Any) -> None:
        """Take over counts."""
        self._seen, window, *counts = state
        self._window = deque(window)
        self._counts = [list(each) for each in counts]


def label(value: Any) -> str:
    """Return a response as a text: 1 and 1.0 are both "1"."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return str(value).strip()


def _part(part: Number, whole: Number) -> float | None:
    return part / whole if whole else None


def _table(tp: int, fp: int, events: int, others: int) -> dict[str, Number | None]:
    """Return what follows from the confusion matrix of one cutoff."""
    fn, tn = events - tp, others - fp
    sensitivity, specificity = _part(tp, events), _part(tn, others)
    both = sensitivity is not None and specificity is not None
    return {
        "tpOut": tp,
        "fpOut": fp,
        "fnOut": fn,
        "tnOut": tn,
        "sensitivityOut": sensitivity,
        "specificityOut": specificity,
        # sensitivity + specificity - 1, rounded once
        "ks2Out": (tp * others - fp * events) / (events * others) if both else None,
        "fprOut": _part(fp, others),
        "accOut": _part(tp + tn, events + others),
        "miscEventOut": _part(fp + fn, events + others),
        "fdrOut": _part(fp, tp + fp),
        "f1Out": _part(2 * tp, 2 * tp + fp + fn),
        "fHalfOut": _part(5 * tp, 5 * tp + 4 * fp + fn),
    }


def _ranks(events: Sequence[int], others: Sequence[int]) -> dict[str, Number | None]:
    """Return what follows from all pairs of an event and another response."""
    concordant = discordant = below = 0
    rest = sum(others)
    for event, other in zip(events, others, strict=True):
        rest -= other
        concordant += event * below
        discordant += event * rest
        below += other
    pairs, n = sum(events) * sum(others), sum(events) + sum(others)
    ahead = concordant - discordant
    return {
        "cOut": _part(pairs + ahead, 2 * pairs),
        "giniOut": _part(ahead, pairs),
        "gammaOut": _part(ahead, concordant + discordant),
        "tauOut": _part(2 * ahead, n * (n - 1)),
    }

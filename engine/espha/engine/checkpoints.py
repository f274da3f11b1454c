"""Checkpoints for their digests: whether the replicas' states are the same."""

from queue import Empty, SimpleQueue

import structlog

from espha.protocol.checkpoint import CheckpointBegun, CheckpointOrder, CheckpointReport
from espha.recovery.pending import Pending

_LOG = structlog.get_logger()


class Checkpoints:
    """Has the worker digest its state now and then, and collects the digests; it never waits.

    A digest may always be missing: when the worker is busy with another checkpoint, or has no
    memory for one.
    """

    def __init__(self) -> None:
        self._pending: Pending | None = None
        self._under_way = False
        self._reports: SimpleQueue[CheckpointReport] = SimpleQueue()

    def order(self) -> CheckpointOrder | None:
        """Return what the worker is to be given, with the batch behind which the state is meant.

        `begun` follows, with the worker's answer. None: one is under way, or there is no free file
        descriptor; this one is passed over.
        """
        if self._under_way or self._pending:
            return None
        try:
            self._pending = Pending()
        except OSError as error:
            _LOG.warning("no checkpoint", reason=error.strerror)
            return None
        return self._pending.order

    @property
    def is_busy(self) -> bool:
        """Whether a digest is still to come."""
        return self._under_way

    def begun(self, answer: CheckpointBegun | None) -> None:
        """Take the worker's answer to `order`; None: it was not given it after all."""
        pending, self._pending = self._pending, None
        if pending is None:
            return
        if answer is None or answer.error:
            pending.drop()
            if answer and not answer.busy:
                _LOG.warning("no checkpoint", reason=answer.error)
            return
        self._under_way = True
        pending.wait(self._reports.put)

    def finished(self) -> list[CheckpointReport]:
        """Return the reports that have come since the last time, without those of failures."""
        reports: list[CheckpointReport] = []
        if not self._under_way:
            return reports
        try:
            report = self._reports.get_nowait()
        except Empty:
            return reports
        self._under_way = False
        if report.error:
            _LOG.warning("no checkpoint", sequence=report.sequence, reason=report.error)
        else:
            reports.append(report)
        return reports

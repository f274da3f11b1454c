"""How long to wait for the next step."""

import random

from espha.backoff import Backoff


class Pauses:
    """Pauses in seconds: the usual one, and growing ones as long as steps fail."""

    def __init__(self, usual_s: float, longest_s: float) -> None:
        self._usual = usual_s
        self._backoff = Backoff(usual_s, longest_s)

    def after(self, went_well: bool) -> float:
        """Return the pause after a step.

        Where many fail together, as when the API server is away, they do not come back together:
        a pause after a failure is cut by up to a half.
        """
        if went_well:
            self._backoff.reset()
            return self._usual
        return self._backoff.next() * random.uniform(0.5, 1.0)  # noqa: S311 - no secret

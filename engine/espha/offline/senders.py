"""Sending what notification windows make. Outside of the kernel, by whoever is active.

A message is sent at least once: an engine that stops after sending and before noting it sends it
again. The header `Idempotency-Key` is the same then, so a receiver can tell.
"""

import urllib.error
import urllib.request
from typing import Final

import structlog

from espha.model import Project
from espha.model.events import Event
from espha.windows.notification.spec import FIELDS, NotificationWindow, is_web

SECONDS: Final = 10.0
"""How long a receiver may take to connect and to answer."""

_LOG = structlog.get_logger(__name__)
_NAMES: Final = tuple(field.name for field in FIELDS)


class SendError(Exception):
    """A message could not be sent; the text says why."""


class Sender:
    """Sends the events that leave the notification windows of a project."""

    def __init__(self, project: Project) -> None:
        """Prepare for a project.

        Args:
            project: the model.
        """
        self._types = {
            (path, channel.name): channel.content_type
            for path, window in project.windows.items()
            if isinstance(window, NotificationWindow)
            for channel in window.channels
        }
        self.windows = frozenset(path for path, _ in self._types)

    def send(self, path: str, event: Event) -> None:
        """Send one message, or log it.

        Args:
            path: "query/window" of a notification window.
            event: what has left it.

        Raises:
            SendError: the receiver has not taken it.
        """
        record = dict(zip(_NAMES, event.values, strict=True))
        _LOG.info("notification", window=path, **record)
        if record["channel"] == "http" and not record["test"]:
            post(
                str(record["target"]),
                str(record["message"]),
                self._types[path, str(record["name"])],
                key=f"{path}/{record['id']!s}",
            )


def post(url: str, message: str, content_type: str, *, key: str) -> None:
    """Post a message.

    Args:
        url: http or https; redirects are not followed.
        message: what to post, in UTF-8.
        content_type: what it is.
        key: the same whenever this message is sent.

    Raises:
        SendError: the address cannot be used, or the answer is not one of success (2xx).
    """
    if not is_web(url):
        raise SendError(f"{url!r} is not an address that starts with http:// or https://")
    headers = {"Content-Type": content_type, "Idempotency-Key": key}
    request = urllib.request.Request(url, message.encode(), headers, method="POST")  # noqa: S310
    try:
        with _OPENER.open(request, timeout=SECONDS) as answer:
            answer.read(1)
    except urllib.error.HTTPError as error:
        raise SendError(f"{url} answered {error.code} {error.reason}") from None
    except (OSError, ValueError) as error:
        raise SendError(f"{url} could not be reached: {error}") from None


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_: object, **__: object) -> None:
        """Follow nothing: the model's author has named one address."""


def _opener() -> urllib.request.OpenerDirector:
    """Return what knows http and https, and neither files nor proxies from the environment."""
    opener = urllib.request.OpenerDirector()
    for handler in (
        urllib.request.HTTPHandler(),
        urllib.request.HTTPSHandler(),
        urllib.request.HTTPDefaultErrorHandler(),
        urllib.request.HTTPErrorProcessor(),
        _NoRedirect(),
    ):
        opener.add_handler(handler)
    return opener


_OPENER: Final = _opener()

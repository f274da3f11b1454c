"""Secrets of adapters: from the environment, or from files that it names; never printed."""

import errno
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from espha.adapters.config import ConfigError

AUTHORIZATION: Final = "HTTP_AUTHORIZATION"
"""The secret that is a whole header `Authorization`, of what is posted and of what is taken."""
_LARGEST = 1 << 20
_HEADER: Final = re.compile(r"[\t\x20-\x7e\x80-\xff]*")
"""What a value of a header may be. Clients say all of it in their errors, if it is not."""


def secret(name: str, environment: Mapping[str, str] = os.environ) -> str:
    """Return the secret called `name`; empty: there is none.

    It is what the variable `name` says, or what stands in the file that `<name>_FILE` names,
    without the newlines at its end.

    Raises:
        ConfigError: the file cannot be read; the text says which, and nothing of what is in it.
    """
    file = environment.get(f"{name}_FILE", "")
    if not file:
        return environment.get(name, "")
    try:
        with Path(file).open("rb") as opened:
            content = opened.read(_LARGEST + 1)
        if len(content) > _LARGEST:
            raise OSError(errno.EFBIG, os.strerror(errno.EFBIG))
        return content.decode().rstrip("\r\n")
    except UnicodeDecodeError:
        raise ConfigError(f"{name}_FILE={file}: not text in UTF-8") from None
    except OSError as error:
        raise ConfigError(f"{name}_FILE={file}: {error.strerror}") from None


def needed(name: str, why: str, environment: Mapping[str, str] = os.environ) -> str:
    """Return a secret that cannot be missing.

    Raises:
        ConfigError: it is; `why` begins the text.
    """
    found = secret(name, environment)
    if not found:
        raise ConfigError(
            f"{why} needs {name}: give it in the environment, from a Secret, or in a file that "
            f"{name}_FILE names"
        )
    return found


def authorization_header(environment: Mapping[str, str] = os.environ) -> str:
    """Return the header `Authorization` to send; empty: none.

    Raises:
        ConfigError: it cannot be one; the text says nothing of what is in it. Or see `secret`.
    """
    found = secret(AUTHORIZATION, environment)
    if not _HEADER.fullmatch(found):
        raise ConfigError(
            f"{AUTHORIZATION} cannot be a header: there is a line break (perhaps at its end) or "
            "another control character in it, or a character that ISO 8859-1 does not have"
        )
    return found

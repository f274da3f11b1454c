"""What every part of the resource has in common."""

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

from espha.adapters.config import PORT


class Part(BaseModel):
    """A part of the resource: camelCase outside, no unknown fields, read only."""

    model_config = ConfigDict(
        alias_generator=to_camel, populate_by_name=True, extra="forbid", frozen=True
    )


Rule = tuple[str, str]
"""A CEL expression that must hold, and the sentence for whoever breaks it."""

# A default that only the operator fills in. The API server must not: a rule has to see whether
# the user gave the field ("managed or external, not both").
OPERATOR_DEFAULT: dict[str, Any] = {"x-operator-default": True}
# Beside a pattern: what the API server says of a text that does not match.
SENTENCE = "x-sentence"


def rules(*pairs: Rule) -> dict[str, Any]:
    """Return schema extras for CEL rules of the API server."""
    return {"x-kubernetes-validations": [{"rule": rule, "message": text} for rule, text in pairs]}


def text(pattern: str, sentence: str, longest: int) -> Any:
    """Return what a text has to match, and the sentence for whoever gives another one.

    Args:
        pattern: a regular expression for all of it.
        sentence: what to give instead; a bare pattern would tell nobody.
        longest: characters.
    """
    return Field(pattern=pattern, max_length=longest, json_schema_extra={SENTENCE: sentence})


_SUBDOMAIN = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*"
_COMPONENT = r"[a-z0-9]+((\.|_{1,2}|-+)[a-z0-9]+)*"
_IMAGE = (
    r"^([a-zA-Z0-9]([-.a-zA-Z0-9]*[a-zA-Z0-9])?(:[0-9]{1,5})?/)?"
    rf"{_COMPONENT}(/{_COMPONENT})*"
    r"(:[A-Za-z0-9_][A-Za-z0-9._-]{0,127})?(@sha256:[0-9a-f]{64})?$"
)

Image = Annotated[
    str,
    text(
        _IMAGE,
        "This is not the name of an image; give [REGISTRY/]NAME[:TAG][@sha256:DIGEST], with "
        "lower-case letters in NAME.",
        255,
    ),
]
Address = Annotated[
    str,
    text(
        rf"^[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?:{PORT}$",
        "This is not an address; give HOST:PORT with a port from 1 to 65535.",
        260,
    ),
]
ObjectName = Annotated[
    str,
    text(
        f"^{_SUBDOMAIN}$",
        "This is not the name of an object; give lower-case letters, digits, '-' and '.', with a "
        "letter or digit at both ends and around each '.'.",
        253,
    ),
]
KeyName = Annotated[
    str,
    text(
        r"^\.?[-_a-zA-Z0-9][-._a-zA-Z0-9]*$",
        "This is not a key of a Secret or ConfigMap; give letters, digits, '-', '_' and '.', with "
        "one '.' at the beginning at most.",
        253,
    ),
]

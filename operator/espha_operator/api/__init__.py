"""The resource `EspHaDeployment`; its models are the only schema."""

from espha_operator.api.names import GROUP, KIND, PLURAL, VERSION
from espha_operator.api.spec import Spec
from espha_operator.api.status import Condition, Phase, Status

__all__ = ["GROUP", "KIND", "PLURAL", "VERSION", "Condition", "Phase", "Spec", "Status"]

"""Conditions about the operator itself: what it offers and nobody takes, and its webhook."""

from espha_operator.api.status import UsedImages
from espha_operator.status.facts import Facts, Verdict
from espha_operator.status.reasons import Reason


def up_to_date(facts: Facts) -> Verdict:
    """Check that the deployment is made of what this operator offers."""
    upgrade = facts.upgrade
    if upgrade is None or upgrade.offered is None or upgrade.waits is None:
        return Verdict(Reason.CURRENT, "Pods are made of what this operator offers.")
    change = _change(upgrade.used, upgrade.offered)
    if upgrade.waits is Reason.KEPT_BY_POLICY:
        return Verdict(upgrade.waits, f"The image policy is Manual; the operator offers {change}.")
    text = f"The operator offers {change}; another deployment rolls out, or has just done so."
    return Verdict(upgrade.waits, text)


def webhook_serving(facts: Facts) -> dict[str, Verdict]:
    """Check that models are checked when they are applied; nothing where nobody wants that."""
    if facts.webhook is None:
        return {}
    if facts.webhook:
        text = f"Models may not be checked when they are applied: {facts.webhook}."
        return {"WebhookServing": Verdict(Reason.WEBHOOK_FAILS, text)}
    text = "Models are checked when they are applied."
    return {"WebhookServing": Verdict(Reason.WEBHOOK_SERVES, text)}


def _change(used: UsedImages, offered: UsedImages) -> str:
    parts = ("engine", "kafka", "zookeeper")
    pairs = ((getattr(used, part), getattr(offered, part)) for part in parts)
    changed = [f"{new} for {old}" for old, new in pairs if old != new]
    return ", ".join(changed) or "other templates of pods"

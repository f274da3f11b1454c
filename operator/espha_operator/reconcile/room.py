"""How much of the brokers' volumes each topic may have, so that all of them last for ever. Pure.

Input topics and the order log are trimmed behind snapshots. Outputs have readers that nobody knows:
they have a share of the volume. Whole segments are deleted, and the newest one never is, so
segments are small beside the volume.
"""

from espha_operator.api.deployment import Deployment
from espha_operator.api.quantities import amount

OUTPUTS_SHARE = 0.3
"""Of a volume, for all output topics and dead letters together."""
_SEGMENTS = 64
_LEAST_SEGMENT, _LARGEST_SEGMENT = 4 << 20, 256 << 20
_SEGMENT_SETTING = "log.segment.bytes"


def segment_bytes(deployment: Deployment) -> int | None:
    """Return the size of topics' segments; None: whoever set up the brokers has decided."""
    kafka = deployment.spec.kafka
    if kafka.external or _SEGMENT_SETTING in kafka.config:
        return None
    size = int(amount(kafka.storage.size)) // _SEGMENTS
    return min(max(size, _LEAST_SEGMENT), _LARGEST_SEGMENT)


def output_bytes(deployment: Deployment, outputs: int) -> int:
    """Return how many bytes each of so many output topics keeps; -1: its time alone decides."""
    spec = deployment.spec
    if spec.kafka.external or not spec.topics.trimmed or spec.topics.output_retention is not None:
        return -1
    share = int(float(amount(spec.kafka.storage.size)) * OUTPUTS_SHARE / max(outputs, 1))
    # The newest segment does not count for Kafka: it comes on top.
    return max(share - (segment_bytes(deployment) or 0), _LEAST_SEGMENT)

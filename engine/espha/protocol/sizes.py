"""How large messages may be, agreed from end to end, and how much is under way at once; bytes.

All topics of a deployment take messages of `MESSAGE_BYTES`, and whoever produces to them knows it.
Consumers need no limit: a broker hands over the first batch of records whatever its size (KIP-74),
to other brokers, too.
"""

MESSAGE_BYTES = 2 << 20
"""`max.message.bytes` of every topic, and the limit of those that produce to them.

It counts what was compressed as it is compressed, so an input record can be much larger.
"""

_SLACK_BYTES = 64 << 10
"""For what comes with a record: the batch of records, its place in it."""

RECORD_BYTES = MESSAGE_BYTES - _SLACK_BYTES
"""Value and headers of an output or a dead letter; what is larger is cut (`pipeline.fitting`).

Replicas must agree on it: it is part of the protocol.
"""

CUT_BYTES = 64 << 10
"""What is left of a value that is too large."""

LEAST_BYTES = 2 * CUT_BYTES
"""`max.message.bytes` that the order log and the dead letters need at least."""

ROW_BYTES = 1 << 20
"""Value of a record that an input adapter publishes; as a dead letter it is still whole."""

TRANSACTION_BYTES = 1 << 20
"""Rows that an input adapter publishes in one transaction; a poll of its source is not cut."""

BATCH_BYTES = 4 << 20
"""Input that the active engine takes for one batch, unless the first record alone is larger."""

REPLAY_BYTES = 8 << 20
"""Input of the batches that a standby runs in one call, unless the first batch alone is larger."""

BUFFER_BYTES = 64 << 20
"""Input that is read ahead, of all topics; a topic that has more than its share is paused."""

"""What time it is by a broker's clock."""

from confluent_kafka import TIMESTAMP_LOG_APPEND_TIME, KafkaError, KafkaException, Message, Producer

from espha.kafka.reader import CLIENT_TUNING, PARTITION

_ANSWER_S = 5.0


def broker_time(bootstrap: str, topic: str) -> int | None:
    """Write an empty record to a scratch topic; return when the broker appended it.

    Args:
        bootstrap: Kafka brokers.
        topic: one with `message.timestamp.type=LogAppendTime`, on which records mean nothing.

    Returns:
        Milliseconds since 1970 by the clock of the broker that leads the topic; None when it does
        not answer in 5 s, or when the topic does not have that setting.
    """
    told: list[int] = []

    def appended(error: KafkaError | None, message: Message) -> None:
        kind, stamp = message.timestamp()
        if error is None and kind == TIMESTAMP_LOG_APPEND_TIME:
            told.append(stamp)

    settings = {**CLIENT_TUNING, "bootstrap.servers": bootstrap, "linger.ms": 0}
    try:
        producer = Producer({**settings, "message.timeout.ms": int(_ANSWER_S * 1000)})
        producer.produce(topic, b"", partition=PARTITION, on_delivery=appended)
        producer.flush(_ANSWER_S)
    except (KafkaException, BufferError):
        return None
    return told[0] if told else None

"""Kafka as espha uses it: exact readers, the fenced writer, the order log."""

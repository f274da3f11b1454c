"""Rows from a Kafka topic that others write, to a source window."""

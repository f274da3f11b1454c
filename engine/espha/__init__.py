"""Highly available event-stream processing: the data plane."""

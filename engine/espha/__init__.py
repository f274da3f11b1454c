"""Highly available event-stream processing: the data plane."""

__version__ = "0.1.0"

"""Connectors that are scripts: their functions make the events."""

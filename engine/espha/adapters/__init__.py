"""Adapters: what brings events into source windows' topics, and results out of windows' topics."""

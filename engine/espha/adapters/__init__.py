"""Adapters: a growing CSV file into a source window's topic, a window's topic into a CSV file."""

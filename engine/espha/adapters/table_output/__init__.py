"""Writes what a window publishes into a table of a database."""

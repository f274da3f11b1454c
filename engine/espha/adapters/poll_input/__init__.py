"""Asks addresses for their contents at an interval."""

"""Functional windows."""

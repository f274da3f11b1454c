"""Procedural windows."""

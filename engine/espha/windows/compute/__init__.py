"""Compute windows."""

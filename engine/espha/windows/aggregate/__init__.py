"""Aggregate windows."""

"""Transpose windows."""

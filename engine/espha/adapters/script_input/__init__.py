"""Calls a script that makes events."""

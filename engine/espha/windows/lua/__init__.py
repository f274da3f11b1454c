"""Lua windows."""

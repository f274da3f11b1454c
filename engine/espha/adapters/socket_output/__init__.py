"""Sends rows to a socket."""

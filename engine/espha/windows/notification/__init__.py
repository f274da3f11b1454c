"""Notification windows."""

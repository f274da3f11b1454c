"""Custom windows."""

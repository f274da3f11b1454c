"""Join windows."""

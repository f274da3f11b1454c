"""Calculate windows."""

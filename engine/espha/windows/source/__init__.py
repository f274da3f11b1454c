"""Source windows."""

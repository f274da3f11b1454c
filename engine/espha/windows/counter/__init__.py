"""Counter windows."""

"""Union windows."""

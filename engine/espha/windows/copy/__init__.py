"""Copy windows."""

"""Filter windows."""

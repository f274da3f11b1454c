"""Python windows."""

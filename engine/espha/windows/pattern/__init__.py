"""Pattern windows."""

"""Takes rows from sockets."""

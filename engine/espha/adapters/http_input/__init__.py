"""Takes rows that others post over HTTP."""

"""Posts rows over HTTP."""

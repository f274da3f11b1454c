"""From what is observed to what users see: pure functions, no client."""

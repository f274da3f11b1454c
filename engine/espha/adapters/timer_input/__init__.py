"""Makes events at an interval."""

"""A window's topic into a CSV file."""

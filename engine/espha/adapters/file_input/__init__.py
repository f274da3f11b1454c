"""A CSV file into a source window's topic."""

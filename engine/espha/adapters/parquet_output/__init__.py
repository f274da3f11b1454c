"""Writes what a window publishes into a dataset of Parquet files."""

"""What several window types use."""

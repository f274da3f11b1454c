"""Remove-state windows."""

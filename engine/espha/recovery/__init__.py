"""State after a crash: snapshots, where they lie, which one to begin with."""

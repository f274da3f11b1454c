"""One folder a window type: (state, event) → events. No clock of its own, no randomness."""

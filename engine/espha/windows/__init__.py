"""One module a window type: (state, event) → events. No I/O, no clock of its own, no randomness."""

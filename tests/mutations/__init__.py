"""Whether the tests of the invariants can fail: each protection is taken out, and its test run."""

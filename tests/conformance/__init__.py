"""The corpus of public ESP projects: does each load, run, and give what is documented?

Its folder is `../shared/corpus` beside the checkout, or what `ESPHA_CORPUS` names. `make
conformance` writes the page of results; see `docs/reference/compatibility.md`.
"""

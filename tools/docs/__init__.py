"""The documentation: the blocks that are made of the code, and the site (`make docs`)."""

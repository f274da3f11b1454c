"""How the rows of payloads are written: bytes of others to records of our topics, and back.

`spec` has the settings that stand in an adapter's configuration (`format:`). `incoming` makes
records of an input topic of what a source has got, `outgoing` makes payloads of the records of an
output topic.
"""

"""What a reader sees: lost, double, out of order, wrong, and how long nothing came.

The checker computes what must come out of a model by itself, from the input topic. It shares no
code with the engine's kernel, so an error there cannot hide here.
"""

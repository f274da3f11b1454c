"""A campaign against adapters: each is killed many times under load, and what came out is judged.

`make edges EDGES="--kills 200 --rotations 100 --rate 1000"`. The judge reads topics, files, tables
and what peers were sent, and shares nothing with adapters.
"""

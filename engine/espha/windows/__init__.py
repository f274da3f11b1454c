"""One folder for each window type: (state, event) → events.

Windows do no I/O and have no clock and no randomness of their own: time is that of the order
record, and random numbers follow from the number of the source event. Windows with a script
(`lua`, `python`, and scripts in `filter` and `compute`) are set apart: they run their script by
`espha.scripts`, which runs Lua in this process and Python in a process of its own.
"""

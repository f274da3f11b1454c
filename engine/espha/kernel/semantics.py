"""The version of what a model means."""

SEMANTICS = 2
"""Goes up by one with every change after which the same model, order records and inputs can lead to
other outputs or to another state: a corrected window or function, another order of events, another
way to write a value, a new form of what a window keeps.

It does not go up for what only changes speed or messages, nor for a new window or function, which
no model before could use. Each order record says with which version it was made. What an engine of
another version has made of a record stands, and is not compared with what this one makes of it
(docs/how-to/upgrade.md).
"""

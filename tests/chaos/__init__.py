"""The fault campaign: real processes, faults at random moments, and what a reader sees of them.

Start it with `make chaos`; docs/explanation/fault-campaign.md tells what it does and what it found.
"""

"""What developers run in this checkout: local cluster, images, jars, demo. No product code."""

from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
"""The checkout."""

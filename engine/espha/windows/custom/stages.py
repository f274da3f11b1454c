"""Custom windows."""

from espha.windows.shared.script import script_stages as stages

__all__ = ["stages"]

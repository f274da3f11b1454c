"""The model: XML to a checked, immutable project, and what follows from it. No I/O."""

from espha.model.digest import model_digest
from espha.model.problems import ModelError, Problem
from espha.model.project import Connector, Edge, Field, Project, Window

__all__ = [
    "Connector",
    "Edge",
    "Field",
    "ModelError",
    "Problem",
    "Project",
    "Window",
    "model_digest",
]

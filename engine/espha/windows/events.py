"""Events and their refusal, under the name that the engine uses.

They are defined beside the types that their values have, in the layer below.
"""

from espha.model.events import FLAGS, OPCODES, BadRecord, Event, Value

__all__ = ["FLAGS", "OPCODES", "BadRecord", "Event", "Value"]

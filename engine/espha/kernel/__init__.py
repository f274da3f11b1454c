"""The windows of a project, wired together.

Events go through the windows breadth first: a window handles all that one source event sends it,
then the windows that follow it get what leaves. The windows stand in one line for that, each
behind all that feed it; of those that could be next, the one whose edge comes first in the model.
What comes to a window from several others is taken in the order in which these stand in the line.
So the order of the outputs is a function of the model and the order of the inputs, and nothing
else.

A window that refuses a unit (an event or an update block) drops it, for itself and the windows
that follow it; the others process it.
"""

from espha.kernel.flow import Outputs
from espha.kernel.kernel import Handled, Kernel, State
from espha.kernel.semantics import SEMANTICS
from espha.kernel.sharing import kernel_of

__all__ = ["SEMANTICS", "Handled", "Kernel", "Outputs", "State", "kernel_of"]

"""How Python looks for garbage that reference counts do not find: cycles."""

import gc


def spare_the_living() -> None:
    """Spare what lives from now on Python's search for cycles.

    A full search takes as long as there is to search: the state of a kernel, the rows of a
    transaction. None of it has cycles. What is made and dropped row by row is still searched, in
    shares that take some 20 ms.
    """
    gc.freeze()
    gc.set_threshold(50_000, 5, 1_000)

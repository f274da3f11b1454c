"""Election, order log, fenced writer, and the engine loop that joins them."""

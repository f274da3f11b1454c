"""The engine process: the loop that follows the order log, takes over, and leads."""

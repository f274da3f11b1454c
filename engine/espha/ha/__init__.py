"""High availability: supervisor, leader election, failure detection, switchover."""

"""A whole deployment on one machine, as plain processes: Kafka, ZooKeeper, engines, adapters."""

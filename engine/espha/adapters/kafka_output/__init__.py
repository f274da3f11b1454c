"""What a window publishes, to a topic of another Kafka cluster."""

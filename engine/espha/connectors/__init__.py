"""What a model says of the world outside: connectors, their properties, Kafka topics."""

"""Models tried out on files, without Kafka and Kubernetes: `espha check`, `run` and `graph`."""

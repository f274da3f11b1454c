"""One batch as one Spark job: decode in Catalyst, the model's kernel in a worker, encode."""

"""One endless Spark query: decode in Catalyst, the model's kernel in a worker, encode."""

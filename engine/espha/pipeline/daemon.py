"""Spark's daemon of Python workers, with all imports done: a worker is forked ready to run."""

import pyspark.worker  # noqa: F401 - what a fresh worker would spend its first second on
from pyspark.daemon import manager

from espha.pipeline.worker import spare_pandas

if __name__ == "__main__":
    spare_pandas()
    manager()

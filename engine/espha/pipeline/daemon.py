"""Spark's daemon of Python workers, with all imports done: a worker is forked ready to run."""

import os

import pyspark.worker  # noqa: F401 - what a fresh worker would spend its first second on
from pyspark.daemon import manager

from espha.pipeline.worker import spare_pandas

BUFFER_BYTES = 65536
"""Of what comes from Spark, and of what goes there; Spark would take its own buffer's size."""

if __name__ == "__main__":
    spare_pandas()
    os.environ["SPARK_BUFFER_SIZE"] = str(BUFFER_BYTES)
    manager()

"""Log lines: JSON on standard output, one object a line."""

import logging
import sys

import structlog


def configure() -> None:
    """Set up structlog, and let the libraries' own warnings come out the same way."""
    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info,
            structlog.processors.JSONRenderer(ensure_ascii=False),
        ],
        logger_factory=structlog.PrintLoggerFactory(sys.stdout),
    )
    logging.basicConfig(level=logging.ERROR, stream=sys.stdout, format="%(name)s: %(message)s")

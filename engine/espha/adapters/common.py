"""What all adapters do alike: get ready from environment and configuration, fail in a sentence."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import structlog

from espha.adapters.config import AdapterConfig, ConfigError, Job
from espha.deployment import DeployedModel, DeploymentError, read_deployed
from espha.garbage import spare_the_living
from espha.kafka.reader import LogError
from espha.kafka.writer import WriterFailed
from espha.protocol.child_side import Control
from espha.protocol.settings import Settings
from espha.protocol.states import EndReason, EngineState

_LOG = structlog.get_logger()


def run_adapter(
    settings: Settings, read_config: Callable[[], AdapterConfig], project: str = ""
) -> None:
    """Run an adapter in this process until it is ended; exits with 1 or 2 on failures.

    Args:
        settings: of this process.
        read_config: returns its configuration; raises ConfigError.
        project: the model that it is meant for; empty: any.
    """
    control = Control((settings.http_host, settings.lifeline_port))
    control.report(EngineState.STARTING, False)
    with in_sentences(control):
        config = read_config()
        deployed = read_deployed(settings.model, settings.prefix, settings.deployment)
        topic = topic_of(config, deployed, project)
        job = Job(
            name=config.name,
            bootstrap=settings.bootstrap,
            prefix=deployed.plan.prefix,
            window=deployed.project.windows[config.window],
            topic=topic,
            positions=deployed.plan.positions,
            control=control,
            host=settings.http_host,
        )
        spare_the_living()
        config.type.runner()(job, config.settings)


def topic_of(config: AdapterConfig, deployed: DeployedModel, project: str = "") -> str:
    """Return the topic of an adapter's window.

    Raises:
        ConfigError: the window has no such topic; the text lists those that do. Or the adapter is
            meant for another model.
    """
    if project not in {"", deployed.project.name}:
        raise ConfigError(
            f"project {project!r} is not the model's, which is {deployed.project.name!r}"
        )
    what, topics = (
        ("an input topic", deployed.plan.inputs)
        if config.type.direction == "pub"
        else ("an output topic", deployed.plan.outputs)
    )
    if config.window not in topics:
        known = ", ".join(topics) or "none"
        raise ConfigError(
            f"window {config.window!r}: not a window with {what} (there are: {known})"
        )
    return topics[config.window]


@contextmanager
def in_sentences(control: Control) -> Iterator[None]:
    """Turn failures into one log line and the exit code of an `EndReason`."""
    try:
        yield
    except ConfigError as error:
        _end(control, EndReason.CONFIGURATION, str(error))
    except DeploymentError as error:
        _end(control, EndReason.MODEL, str(error))
    except LogError as error:
        _end(control, EndReason.TOPIC, f"{type(error).__name__}: {error}")
    except WriterFailed as error:
        _end(control, error.reason, f"{type(error).__name__}: {error}")


def _end(control: Control, reason: EndReason, message: str) -> None:
    _LOG.error(message, state=reason.state, reason=reason)
    control.report(reason.state, False, message=message, reason=reason)
    sys.exit(reason.code)


def problem_of(name: str, error: OSError) -> str:
    """Say what is wrong with a file or a peer, and that nothing is lost."""
    return f"{name}: {error.strerror or error}; trying again, nothing is lost"

"""Puts an engine process together from its environment, and ends it with a sentence."""

import os
import sys
from typing import NoReturn

import structlog

from espha.model import ModelError, read_project
from espha.model.topics import topic_plan
from espha.pipeline.codec import CodecError
from espha.pipeline.job import BatchJob, StateLostError
from espha.pipeline.session import FastFence, open_session
from espha.runtime.acknowledged import acknowledgements
from espha.runtime.control import Control
from espha.runtime.engine import Diverged, Engine
from espha.runtime.inputs import Inputs
from espha.runtime.log import LogError
from espha.runtime.orderlog import OrderLog
from espha.runtime.settings import Settings
from espha.runtime.writer import FencedWriter, WriterFailed

_LOG = structlog.get_logger()


def run_engine(settings: Settings) -> NoReturn:
    """Run an engine in this process until something ends it; exits with 1 or 2 (bad model)."""
    control = Control()
    control.report("starting", False)
    try:
        _assemble(settings, control).run()
    except (ModelError, CodecError) as error:
        _give_up(control, "refused", str(error), 2)
    except OSError as error:
        _give_up(control, "refused", f"{settings.model}: {error.strerror}", 2)
    except Diverged as error:
        _give_up(control, "diverged", str(error), 1)
    except (WriterFailed, LogError, StateLostError) as error:
        _give_up(control, "failed", f"{type(error).__name__}: {error}", 1)
    except Exception as error:
        # A bug, or a Spark failure: the traceback goes to the log, the sentence to the status.
        _LOG.exception("engine failed")
        _give_up(control, "failed", f"{type(error).__name__}: {error}"[:500], 1)
    raise AssertionError("an engine runs until something ends it")


def transactional_id(prefix: str, project: str) -> str:
    """Return the id that all engines of a deployment share."""
    return f"{prefix}.{project}"


def _assemble(settings: Settings, control: Control) -> Engine:
    xml = settings.model.read_text(encoding="utf-8")
    project = read_project(xml, settings.model.name)
    plan = topic_plan(project, settings.prefix, settings.deployment)
    session = open_session(settings.spark_master, settings.jars)
    return Engine(
        name=settings.name,
        project=project,
        plan=plan,
        job=BatchJob(session, xml, project, plan),
        log=OrderLog(settings.bootstrap, plan.order_log),
        inputs=Inputs(settings.bootstrap, list(plan.inputs.values())),
        writer=FencedWriter(settings.bootstrap, transactional_id(plan.prefix, project.name)),
        fence=FastFence(session, settings.bootstrap),
        control=control,
        acknowledge=acknowledgements(settings.ack_log),
    )


def _give_up(control: Control, state: str, message: str, code: int) -> NoReturn:
    _LOG.error(message, state=state)
    control.report(state, False, message=message)
    sys.stdout.flush()
    os._exit(code)  # an orderly end of Spark takes a second, in which the znode would live on

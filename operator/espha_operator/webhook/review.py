"""What the webhook says about an object that somebody wants to store. Pure but for one look-up."""

from collections.abc import Callable
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

from espha.model import ModelError
from espha.reader import read_project
from espha_operator.api.images import Images
from espha_operator.reconcile import models
from espha_operator.resources.meta import Object
from espha_operator.status.facts import Verdict

# What marks a ConfigMap as one with models; the chart registers the webhook for these.
MODEL_LABEL = "espha.dev/model"
# The API server's own number for objects that make no sense.
UNPROCESSABLE = 422
# A warning that is longer is cut by the API server.
WARNING_LENGTH = 250

FindConfigMap = Callable[[str, str], Object | None]
"""Returns a namespace's ConfigMap of a name; None when there is none."""


class _Message(BaseModel):
    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True, extra="ignore")


class Request(_Message):
    """What somebody wants to do, as the API server tells it (admission.k8s.io/v1)."""

    uid: str
    operation: Literal["CREATE", "UPDATE", "DELETE", "CONNECT"]
    object: dict[str, Any] | None = None
    old_object: dict[str, Any] | None = None


class Status(_Message):
    """Why it is refused."""

    code: int
    message: str


class Response(_Message):
    """Whether it may be done."""

    uid: str
    allowed: bool
    status: Status | None = None
    warnings: list[str] = Field(default_factory=list)


class Question(_Message):
    """An AdmissionReview as it comes."""

    request: Request


class Answer(_Message):
    """An AdmissionReview as it goes."""

    api_version: str = "admission.k8s.io/v1"
    kind: str = "AdmissionReview"
    response: Response


def deployment(request: Request, images: Images, find: FindConfigMap) -> Response:
    """Judge an EspHaDeployment: its spec as the operator reads it, and its model.

    What was as wrong before may stay so, with a warning: scaling, and the removal of a finalizer,
    must not fail because of a model that runs nowhere. A ConfigMap may come after the deployment
    that names it.
    """
    new, old = request.object or {}, request.old_object or {}
    if request.operation not in ("CREATE", "UPDATE") or _leaves(new):
        return _allowed(request)
    spec = new.get("spec") or {}
    before = old.get("spec") or {}
    parsed = models.parse(_complete(new), images)
    if isinstance(parsed, Verdict):
        return _judged(request, parsed.message, as_before=spec == before)
    text = models.text(parsed, lambda name: find(parsed.namespace, name))
    if isinstance(text, Verdict):
        return _allowed(request, f"{text.message} Nothing starts before there is one.")
    checked = models.check(*text, parsed)
    if isinstance(checked, Verdict):
        same = _about_model(spec) == _about_model(before)
        return _judged(request, checked.message, as_before=same)
    return _allowed(request, " ".join(checked.not_run))


def config_map(request: Request) -> Response:
    """Judge a ConfigMap that is marked as one with models: each key that ends with `.xml`."""
    new, old = request.object or {}, request.old_object or {}
    if request.operation not in ("CREATE", "UPDATE") or _leaves(new):
        return _allowed(request)
    before = (old.get("data") or {}) if _marked(old) else {}
    for key, text in sorted((new.get("data") or {}).items()):
        if key.endswith(".xml") and text != before.get(key):
            problem = _unreadable(text, key)
            if problem:
                return _judged(request, problem, as_before=False)
    return _allowed(request)


def _marked(config_map: Object) -> bool:
    labels = config_map.get("metadata", {}).get("labels") or {}
    return bool(labels.get(MODEL_LABEL) == "true")


def _unreadable(xml: str, source: str) -> str:
    try:
        read_project(xml, source)
    except ModelError as error:
        return f"{source}: {models.shortened(map(str, error.problems))}"
    return ""


def _about_model(spec: Object) -> tuple[object, ...]:
    prefix = (spec.get("topics") or {}).get("prefix")
    return spec.get("model"), prefix, spec.get("adapters")


def _complete(resource: Object) -> Object:
    """Return a resource with what it does not have before it is stored."""
    meta = {"name": "", "namespace": "", "uid": "", "generation": 1, **resource.get("metadata", {})}
    return {**resource, "metadata": meta}


def _leaves(resource: Object) -> bool:
    return "deletionTimestamp" in (resource.get("metadata") or {})


def _allowed(request: Request, warning: str = "") -> Response:
    warnings = [warning[:WARNING_LENGTH]] if warning else []
    return Response(uid=request.uid, allowed=True, warnings=warnings)


def _judged(request: Request, problem: str, *, as_before: bool) -> Response:
    if as_before and request.operation == "UPDATE":
        return _allowed(request, problem)
    status = Status(code=UNPROCESSABLE, message=problem)
    return Response(uid=request.uid, allowed=False, status=status)

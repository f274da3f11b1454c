"""Adapters: what brings events in and results out; made of `espha.adapters.types.ADAPTERS`."""

from pathlib import Path
from typing import Annotated, Any, ClassVar, Self

from pydantic import BaseModel, ConfigDict, Field, create_model, model_validator
from pydantic.fields import FieldInfo

from espha.adapters.config import AdapterConfig, AdapterType, one_of, with_types
from espha.adapters.kafka_cluster import SERVERS
from espha.adapters.mqtt_broker import BROKER, CLIENT_ID, FILTER, PROPERTY
from espha.adapters.mqtt_broker import TOPIC as MQTT_TOPIC
from espha.adapters.poll_input.spec import ADDRESS as POLLED
from espha.adapters.script_input.spec import NAME as FUNCTION
from espha.adapters.types import adapters
from espha.adapters.websocket_input.spec import ADDRESS as SOCKETS
from espha_operator.api.base import Address, ObjectName, Part, rules, text
from espha_operator.api.names import HEARTBEAT_PORT, HTTP_PORT, LIFELINE_PORT
from espha_operator.api.pods import Placement, PodTemplate, Variable, by_key, pod_field
from espha_operator.api.quantities import Resources, Storage, Usual, own_resources_of, resources_of

USUAL_ADAPTER = Usual("25m", "128Mi", "384Mi", least="192Mi", scratch="256Mi")
_STEP = r"(\.{0,2}[A-Za-z0-9_-][A-Za-z0-9_.-]*|\.\.\.[A-Za-z0-9_.-]*)"
DataPath = Annotated[
    str,
    text(
        f"^/data(/{_STEP})+$",
        "Files of adapters lie on the volume; give a path under /data without '..', of letters, "
        "digits, '_', '.' and '-'.",
        500,
    ),
]
DataFolder = Annotated[
    str,
    text(
        f"^/data(/{_STEP})*$",
        "Files of adapters lie on the volume; give /data or a folder under it without '..', of "
        "letters, digits, '_', '.' and '-'.",
        500,
    ),
]
AdapterName = Annotated[
    str,
    text(
        r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$",
        "This is not the name of an adapter; give lower-case letters, digits and '-', with a "
        "letter or digit at both ends.",
        20,
    ),
]
WindowName = Annotated[
    str,
    text(r"^[^/\s]+/[^/\s]+$", "This is not the name of a window; give QUERY/WINDOW.", 200),
]
# A deployment called <this one>-input-… makes objects that end so.
_TAKEN = (
    r"(^|-)(kafka|zookeeper|engine|adapter)(-headless|-[0-9]+)?$|(^|-)(active|model|token)$|"
    r"(^|-)(input|output|model)-"
)
_VOLUME = "An adapter of files needs a volume; name a PersistentVolumeClaim in volume.claimName."
_VALIDATIONS = "x-kubernetes-validations"
_ONE_VOLUME = "Give volume (one for all replicas) or storage (one for each of them), not both."

SECRETS = "/secrets"
"""Folder with a folder of each Secret. Users choose no path: none lies over what pods need."""
_PORTS = (HTTP_PORT, HEARTBEAT_PORT, LIFELINE_PORT)
_PORT_TAKEN = (
    f"The pod itself listens on the ports {', '.join(map(str, _PORTS))}; choose another port."
)


class Volume(Part):
    """The volume with the adapter's files; it is mounted at /data."""

    claim_name: ObjectName = Field(description="PersistentVolumeClaim in the same namespace.")


class SecretFiles(Part):
    """A Secret whose keys are files of the adapter's pods."""

    secret_name: ObjectName = Field(
        description="Secret in the same namespace; pods start once it is there. Its keys are files "
        f"in {SECRETS}/<secretName>, for variables such as MQTT_PASSWORD_FILE in pod.env."
    )


def _paths(settings: type[BaseModel]) -> list[str]:
    kinds = (Path, Path | None)
    return [name for name, field in settings.model_fields.items() if field.annotation in kinds]


_TOPIC = text(
    r"^[A-Za-z0-9._-]+$",
    "This is not the name of a topic; give letters, digits, '.', '_' and '-'.",
    249,
)
_FUNCTION = text(
    FUNCTION,
    "This is not the name of a function; give letters, digits and '_', no digit first.",
    100,
)
# What the settings' own functions check: the API server has to know it, too. Where a name means
# different things, it stands behind that of the settings.
_CHECKED = {
    "servers": text(
        SERVERS,
        "These are not addresses of brokers; give HOST:PORT, several with ',' between them.",
        1000,
    ),
    "InputKafka.topic": _TOPIC,
    "OutputKafka.topic": _TOPIC,
    "positions": _TOPIC,
    "broker": text(BROKER, "This is not the address of a broker; give HOST:PORT.", 260),
    "client_id": text(
        CLIENT_ID,
        "This is not the name of a client; give letters, digits, '.', '_', ':', '/' and '-'.",
        128,
    ),
    "id_property": text(
        PROPERTY,
        "This is not the name of a property; give letters, digits, '.', '_' and '-'.",
        100,
    ),
    "InputPoll.address": text(
        POLLED,
        "This is not an address; give http[s]://HOST[:PORT]/PATH. What the server wants to know of "
        "who asks belongs into a Secret, and from there into the variable HTTP_AUTHORIZATION of "
        "pod.env.",
        1000,
    ),
    "InputWebsocket.address": text(
        SOCKETS,
        "This is not the address of a WebSocket; give ws[s]://HOST[:PORT]/PATH. What the server "
        "wants to know of who connects belongs into a Secret, and from there into the variable "
        "HTTP_AUTHORIZATION of pod.env.",
        1000,
    ),
    "publish": _FUNCTION,
    "init": _FUNCTION,
    "InputMqtt.topic": text(
        FILTER,
        "These are not topics; '+' stands between two '/', and '#' at the end, behind a '/'.",
        1000,
    ),
    "OutputMqtt.topic": text(
        MQTT_TOPIC, "This is not the name of a topic; give one without '+' and '#'.", 1000
    ),
    "pattern": text(
        "^[^/]*$", "These are names in the folder; give a pattern without '/', like *.csv.", 200
    ),
    "date_format": text(
        "^([^%]|%[EO]?[DFRTrheklntcxXYymdHIMSfjpbazZsuwUWVBAP%])*$",
        "This is not a format of strptime; give directives that it knows, like %Y-%m-%d %H:%M:%S.",
        200,
    ),
    "delimiter": text(
        r'^[^"\r\n]$', "This cannot separate columns; give one character, no quotation mark.", 1
    ),
    "url": text(
        r"^postgresql://([A-Za-z0-9_.%-]+@)?[A-Za-z0-9_.-]+(:[0-9]{1,5})?/[A-Za-z0-9_%.-]+$",
        "This is not the address of a database; give postgresql://[USER@]HOST[:PORT]/DATABASE. A "
        "password belongs into a Secret, and from there into the variable PGPASSWORD of pod.env.",
        500,
    ),
    "connect": text("^[A-Za-z0-9_.-]+:[0-9]{1,5}$", "This is not a peer; give HOST:PORT.", 260),
    "address": text(
        r"^https?://[A-Za-z0-9_.-]+(:[0-9]{1,5})?(/[^\s@#]*)?$",
        "This is not the address of a server; give http[s]://HOST[:PORT]/PATH. What it wants to "
        "know of who posts belongs into a Secret, and from there into the variable "
        "HTTP_AUTHORIZATION of pod.env.",
        1000,
    ),
    "base": text(
        "^[0-9]{4}-[0-9]{2}-[0-9]{2} [0-9]{2}:[0-9]{2}:[0-9]{2}$",
        "This is not a moment; give YYYY-mm-dd HH:MM:SS, in UTC.",
        19,
    ),
    "table": text(
        r"^([A-Za-z_][A-Za-z0-9_]{0,62}\.)?[A-Za-z_][A-Za-z0-9_]{0,62}$",
        "This is not the name of a table; give [SCHEMA.]NAME, of letters, digits and '_'.",
        127,
    ),
}


def on_volume(settings: type[BaseModel]) -> type[BaseModel]:
    """Return an adapter's settings for a pod, where all paths lie under /data."""
    known = settings.model_fields
    fields: dict[str, Any] = {name: _on_data(name, known[name]) for name in _paths(settings)}
    for name, field in known.items():
        checked = _CHECKED.get(f"{settings.__name__}.{name}", _CHECKED.get(name))
        if checked is None:
            continue
        kind = Annotated[str, checked]
        if field.is_required():
            fields[name] = (kind, Field(description=field.description))
        else:
            optional = kind if isinstance(field.default, str) else kind | None
            fields[name] = (optional, Field(field.default, description=field.description))
    made = create_model(settings.__name__, __base__=settings, __doc__=settings.__doc__, **fields)
    either = getattr(settings, "either", ())
    if either:
        count = " + ".join(f"(has(self.{name}) ? 1 : 0)" for name in either)
        sentence = f"Give exactly one of: {', '.join(either)}."
        own = settings.model_config.get("json_schema_extra")
        said: dict[str, Any] = dict(own) if isinstance(own, dict) else {}
        both = [*rules((f"{count} == 1", sentence))[_VALIDATIONS], *said.get(_VALIDATIONS, [])]
        made.model_config["json_schema_extra"] = {**said, _VALIDATIONS: both}
    return made


def _on_data(name: str, field: FieldInfo) -> tuple[Any, Any]:
    kind: Any = DataFolder if name == "home" else DataPath
    description = f"{field.description} Under /data."
    if field.is_required():
        return kind, Field(description=description)
    return kind | None, Field(None, description=description)


def _filed(one: AdapterType) -> str:
    """Return the rule by which an adapter of this type needs a volume."""
    required = any(one.settings.model_fields[name].is_required() for name in _paths(one.settings))
    named = " || ".join(f"has(self.{one.name}.{name})" for name in _paths(one.settings))
    return f"has(self.{one.name})" if required else f"has(self.{one.name}) && ({named})"


def _rules(types: tuple[AdapterType, ...]) -> dict[str, Any]:
    given = " + ".join(f"(has(self.{one.name}) ? 1 : 0)" for one in types)
    filed = " || ".join(_filed(one) for one in types if _paths(one.settings))
    each = "has(self.storage) || " if types[0].direction == "pub" else ""
    own = ", ".join(map(str, _PORTS))
    free = (
        f"!has(self.{one.name}) || !has(self.{one.name}.port) || !(self.{one.name}.port in [{own}])"
        for one in types
        if getattr(one.settings, "listens", "")
    )
    return rules(
        *((rule, _PORT_TAKEN) for rule in free),
        (f"{given} == 1", f"{one_of(types).capitalize()}."),
        (f"has(self.volume) || {each}!({filed})", _VOLUME),
        *([("!(has(self.volume) && has(self.storage))", _ONE_VOLUME)] if each else []),
        (
            f"!self.name.matches(r'{_TAKEN}')",
            "An object of another deployment could have this adapter's name; choose one without "
            "kafka, zookeeper, engine, adapter, active, model or token at its end, and without "
            "input- or output- in it.",
        ),
    )


class Adapter(AdapterConfig):
    """What all adapters of a deployment have.

    Attributes:
        role: what the names of its objects begin with.
        field: where it stands in `spec.adapters`.
        elected: one of its pods is active, the others wait.
    """

    role: ClassVar[str]
    field: ClassVar[str]
    elected: ClassVar[bool]

    name: AdapterName = Field(description="Name of the adapter.")
    window: WindowName = Field(description="The window, as <query>/<window>.")
    pod: PodTemplate | None = pod_field("the adapter")
    volume: Volume | None = Field(None, description="Where files are; adapters of files need it.")
    secret_files: list[SecretFiles] | None = Field(
        None,
        max_length=8,
        description="Secrets whose keys are files of the pods: passwords, certificates, keys.",
        json_schema_extra=by_key("secretName"),
    )
    resources: Resources | None = own_resources_of(
        "adapter", USUAL_ADAPTER, "spec.adapters.resources"
    )

    @model_validator(mode="after")
    def _has_its_volume(self) -> Self:
        paths = (getattr(self.settings, name) for name in _paths(self.type.settings))
        if self.volume is None and self.own_storage is None and any(paths):
            raise ValueError(_VOLUME)
        if self.volume is not None and self.own_storage is not None:
            raise ValueError(_ONE_VOLUME)
        return self

    @model_validator(mode="after")
    def _has_a_port_of_its_own(self) -> Self:
        if self.port in _PORTS:
            raise ValueError(_PORT_TAKEN)
        return self

    @property
    def own_storage(self) -> Storage | None:
        """The volume that each of its replicas has; None: they have one together, or none."""
        return None

    @property
    def port(self) -> int | None:
        """Port on which its pods listen for those who send; None: they do not."""
        setting = getattr(self.type.settings, "listens", "")
        found: int | None = getattr(self.settings, setting) if setting else None
        return found

    @property
    def by_role(self) -> bool:
        """Whether those who send must reach the pod that is active, of several."""
        return self.port is not None and self.elected and self.pods > 1

    @property
    def label(self) -> str:
        """Its name among the objects of the deployment."""
        return f"{self.role}-{self.name}"

    @property
    def pods(self) -> int:
        """Number of its pods."""
        return 1


@with_types(adapters("pub"), on_volume)
class InputAdapter(Adapter):
    """Feeds a source window. One replica is active, the others wait."""

    model_config = ConfigDict(json_schema_extra=_rules(adapters("pub")))
    role = "input"
    field = "inputs"
    elected = True

    replicas: int = Field(2, ge=1, le=5, description="Number of pods; one of them is active.")
    storage: Storage | None = Field(
        None,
        description="A volume for each replica, instead of volume. Its claim is called "
        "data-DEPLOYMENT-input-NAME-N; one that is there already is used as it is.",
    )

    @property
    def own_storage(self) -> Storage | None:
        """The volume that each of its replicas has; None: they have one together, or none."""
        return self.storage

    @property
    def pods(self) -> int:
        """Number of its pods."""
        return self.replicas


@with_types(adapters("sub"), on_volume)
class OutputAdapter(Adapter):
    """Takes what a window with a kafka subscriber publishes."""

    model_config = ConfigDict(json_schema_extra=_rules(adapters("sub")))
    role = "output"
    field = "outputs"
    elected = False


ROLES = (InputAdapter.role, OutputAdapter.role)


def _unique(which: str) -> tuple[str, str]:
    once = f"self.{which}.exists_one(other, other.name == one.name)"
    return (
        f"!has(self.{which}) || self.{which}.all(one, {once})",
        f"The names of {which[:-1]} adapters must be different.",
    )


class Adapters(Part):
    """What brings events in and results out."""

    model_config = ConfigDict(
        json_schema_extra=rules(
            _unique("inputs"),
            _unique("outputs"),
        )
    )

    inputs: list[InputAdapter] = Field(
        default_factory=list, max_length=16, description="Adapters that feed source windows."
    )
    outputs: list[OutputAdapter] = Field(
        default_factory=list, max_length=16, description="Adapters that take results."
    )

    from_model: bool = Field(
        False,
        description="Connectors of the model become adapters, too: those of the classes fs, mqtt, "
        "timer, adapter, url, websocket, python and lua, db of type sub, and kafka of another "
        "cluster (otherBrokers). Their files lie on the volume: a relative path is one under "
        "/data, an absolute one is taken as if the volume were the root. A window that is written "
        "to gets an output topic. Connectors that cannot be run are named in the status.",
    )
    volume: Volume | None = Field(
        None,
        description="Where the files of the model's connectors are; without it, connectors of "
        "files cannot become adapters.",
    )
    env: list[Variable] | None = Field(
        None,
        max_length=32,
        description="Further variables of adapters that are made from the model.",
        json_schema_extra=by_key("name"),
    )
    placement: Placement | None = Field(
        None, description="Where pods of adapters run that are made from the model."
    )
    other_brokers: list[Address] = Field(
        default_factory=list,
        max_length=16,
        description="Brokers of other Kafka clusters, HOST:PORT. A kafka connector whose "
        "kafkahostport names one of them becomes an adapter; others name topics of the deployment.",
    )

    resources: Resources = resources_of("adapter", USUAL_ADAPTER)

    @property
    def every(self) -> list[Adapter]:
        """All of them."""
        return [*self.inputs, *self.outputs]

"""What an adapter is: one way to bring events in, or results out.

An adapter is a folder with two modules: `spec`, which has its settings and `ADAPTER`, and `run`,
which has `run(job, settings)`. `espha.adapters.types` lists them; the command line, the
configuration files, the resource and the operator's objects follow from that list. `spec` imports
neither Kafka nor Spark, since the operator reads it; `run` is imported when it is needed.
"""

import json
from collections.abc import Callable, Iterable, Sequence
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, NamedTuple, Protocol, Self, TypeVar

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    StringConstraints,
    ValidationError,
    create_model,
    model_validator,
)
from pydantic.alias_generators import to_camel

from espha.model import Window
from espha.protocol.child_side import Control

PORT = "([1-9][0-9]{0,3}|[1-5][0-9]{4}|6[0-4][0-9]{3}|65[0-4][0-9]{2}|655[0-2][0-9]|6553[0-5])"
"""A port from 1 to 65535, as a regular expression."""

Direction = Literal["pub", "sub"]


class ConfigError(Exception):
    """An adapter cannot start as it is configured; the text says what to change."""


class Held(Exception):  # noqa: N818 - it names a state
    """A source has to wait for something; the text says for what. Nothing is lost."""


class Part(BaseModel):
    """A part of a configuration: camelCase outside, no unknown fields, read only."""

    model_config = ConfigDict(
        alias_generator=to_camel, populate_by_name=True, extra="forbid", frozen=True
    )


class AdapterType(NamedTuple):
    """One way to bring events in or results out.

    Attributes:
        name: the field of a configuration that chooses it.
        direction: `pub` brings events to a source window, `sub` takes what a window publishes.
        settings: what stands in that field; paths in it are those of files.
    """

    name: str
    direction: Direction
    settings: type[BaseModel]

    def runner(self) -> "Runner":
        """Import what runs it."""
        folder = self.settings.__module__.rpartition(".")[0]
        found: Runner = import_module(f"{folder}.run").run
        return found


class Job(NamedTuple):
    """What every adapter has to work with.

    Attributes:
        name: the adapter's.
        bootstrap: Kafka's servers.
        prefix: what the names of the deployment's topics begin with.
        window: the window that it serves.
        topic: the window's topic.
        positions: topic where input adapters keep how far they are.
        control: tells the role, and takes reports.
        host: address on which an adapter that is sent to listens.
    """

    name: str
    bootstrap: str
    prefix: str
    window: Window
    topic: str
    positions: str
    control: Control
    host: str = "127.0.0.1"


class Runner(Protocol):
    """Runs an adapter until the process is ended."""

    def __call__(self, job: Job, settings: Any, /) -> None:
        """Run.

        Args:
            job: what to work with.
            settings: of the type's own class.

        Raises:
            ConfigError: people have to change something.
            LogError, WriterFailed: Kafka refuses; a new process may do better.
        """
        ...


class AdapterConfig(Part):
    """The configuration of an adapter: its name, its window, and the settings of one type."""

    types: ClassVar[tuple[AdapterType, ...]] = ()

    name: Annotated[
        str,
        StringConstraints(pattern=r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$", min_length=1, max_length=20),
    ] = Field(description="Name of the adapter.")
    window: Annotated[str, StringConstraints(pattern=r"^[^/\s]+/[^/\s]+$", max_length=200)] = Field(
        description="The window, as <query>/<window>."
    )

    @model_validator(mode="after")
    def _one_type(self) -> Self:
        if sum(getattr(self, one.name) is not None for one in self.types) != 1:
            raise ValueError(one_of(self.types))
        return self

    @property
    def type(self) -> AdapterType:
        """Which adapter it is."""
        return next(one for one in self.types if getattr(self, one.name) is not None)

    @property
    def settings(self) -> BaseModel:
        """The settings of that adapter."""
        found: BaseModel = getattr(self, self.type.name)
        return found

    def text(self) -> str:
        """Return the configuration file, without what is as it is by default."""
        values = self.model_dump(
            mode="json",
            by_alias=True,
            exclude_defaults=True,
            include={"name", "window", self.type.name},
        )
        return json.dumps(values, indent=1) + "\n"


def one_of(types: Sequence[AdapterType]) -> str:
    """Return the rule that a configuration chooses one of these."""
    return f"give exactly one of: {', '.join(one.name for one in types)}"


AnyConfig = TypeVar("AnyConfig", bound=AdapterConfig)
Settings = type[BaseModel]


def with_types(
    types: Iterable[AdapterType], adapt: Callable[[Settings], Settings] = lambda settings: settings
) -> Callable[[type[AnyConfig]], type[AnyConfig]]:
    """Decorate a configuration: it gets a field for the settings of each of these adapters.

    Args:
        types: the adapters to choose from.
        adapt: makes of an adapter's settings what stands in the field.
    """
    known = tuple(types)

    def decorate(config: type[AnyConfig]) -> type[AnyConfig]:
        fields: dict[str, Any] = {
            one.name: (adapt(one.settings) | None, Field(None, description=one.settings.__doc__))
            for one in known
        }
        made = create_model(
            config.__name__,
            __base__=config,
            __module__=config.__module__,
            __doc__=config.__doc__,
            **fields,
        )
        made.types = known
        return made

    return decorate


def load(path: Path, kind: type[AnyConfig]) -> AnyConfig:
    """Read a configuration file.

    Raises:
        ConfigError: one line for each thing that is wrong, with its place in the file.
    """
    try:
        return kind.model_validate_json(path.read_bytes())
    except OSError as error:
        raise ConfigError(f"{path}: {error.strerror}") from None
    except ValidationError as error:
        lines = [
            f"{path}: {'.'.join(str(part) for part in problem['loc']) or 'file'}: {problem['msg']}"
            for problem in error.errors()
        ]
        raise ConfigError("\n".join(lines)) from None

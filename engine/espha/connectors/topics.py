"""Names of the Kafka topics of a deployed model."""

from dataclasses import dataclass
from typing import Literal

from espha.connectors.connectors import TOPIC
from espha.connectors.files import own_format
from espha.model.problems import ModelError, Problem
from espha.model.project import Connector, Project, Window

_SCRATCH, _POSITIONS = ".warm-up", ".P"


def order_log_of(prefix: str) -> str:
    """Return the topic with the order records of a deployment whose topics begin so."""
    return f"{prefix}.M"


def positions_of(prefix: str) -> str:
    """Return the topic where its input adapters keep how far they are."""
    return f"{prefix}{_POSITIONS}"


def own_settings(topic: str) -> dict[str, str]:
    """Return the settings in which a topic differs from a deployment's others.

    On the scratch topic brokers say what time it is (`espha.kafka.broker_time`), and nothing stays.
    Of the positions of input adapters the newest ones stay, for ever.
    """
    if topic.endswith(_SCRATCH):
        return {"message.timestamp.type": "LogAppendTime", "retention.ms": "3600000"}
    if topic.endswith(_POSITIONS):
        return {"cleanup.policy": "compact", "retention.ms": "-1", "segment.bytes": str(8 << 20)}
    return {}


@dataclass(frozen=True, slots=True)
class TopicPlan:
    """The topics of one deployment.

    Attributes:
        prefix: what the names begin with.
        inputs: topic of each source window, by "query/window", in model order.
        outputs: topic of each window with a Kafka connector of type sub, likewise.
        order_log: where order records go.
        dead_letters: where refused records go.
        scratch: where engines practise transactions; nobody reads it.
    """

    prefix: str
    inputs: dict[str, str]
    outputs: dict[str, str]
    order_log: str
    dead_letters: str
    scratch: str

    @property
    def positions(self) -> str:
        """Where input adapters keep how far they are."""
        return positions_of(self.prefix)

    def all(self) -> list[str]:
        """All topics: inputs, outputs, order log, dead letters, scratch, positions."""
        return [*self.of_engines(), self.positions]

    def of_engines(self) -> list[str]:
        """Return the topics that engines use: all but the positions of input adapters."""
        own = [self.order_log, self.dead_letters, self.scratch]
        return [*self.inputs.values(), *self.outputs.values(), *own]


def topic_plan(project: Project, prefix: str = "", deployment: str = "default/espha") -> TopicPlan:
    """Say which topics a deployment of `project` has.

    Args:
        project: the model.
        prefix: begins all names; empty: connectors decide (`kafkatopic`, `urlhostport`).
        deployment: "namespace/name", the prefix when nobody else says one.

    Raises:
        ModelError: a name is no Kafka topic, two topics would have the same name, or a Kafka
            connector cannot be deployed as it is.
    """
    _check_connectors(project, prefix)
    start = prefix or _prefix_of(project) or deployment.replace("/", "_")
    inputs, outputs = {}, {}
    for path, window in project.windows.items():
        pub, sub = window.kafka("pub"), window.kafka("sub")
        if window.type == "source":
            inputs[path] = _topic(project, window, start, "I", None if prefix else pub)
        if sub is not None:
            outputs[path] = _topic(project, window, start, "O", None if prefix else sub)
    plan = TopicPlan(
        start, inputs, outputs, order_log_of(start), f"{start}.E", f"{start}{_SCRATCH}"
    )
    _check(project, plan)
    return plan


def _prefix_of(project: Project) -> str:
    for window in project.windows.values():
        for connector in window.connectors:
            if connector.class_ == "kafka" and connector.properties.get("urlhostport"):
                # A colon is not allowed in a topic; host:port is written host_port.
                return connector.properties["urlhostport"].replace(":", "_")
    return ""


def _topic(
    project: Project,
    window: Window,
    prefix: str,
    end: Literal["I", "O"],
    connector: Connector | None,
) -> str:
    own = connector.properties.get("kafkatopic") if connector else None
    return own or f"{prefix}.{project.name}.{window.query}.{window.name}.{end}"


def _check(project: Project, plan: TopicPlan) -> None:
    seen: dict[str, Window | None] = {}
    topics: list[tuple[str, Window | None]] = [
        *((topic, project.windows[path]) for path, topic in plan.inputs.items()),
        *((topic, project.windows[path]) for path, topic in plan.outputs.items()),
        (plan.order_log, None),
        (plan.dead_letters, None),
        (plan.scratch, None),
        (plan.positions, None),
    ]
    for topic, window in topics:
        if not TOPIC.fullmatch(topic):
            raise _refusal(
                project,
                window,
                f"{topic!r} is no Kafka topic: 1 to 249 letters, digits, dots, _ and -; use a "
                "shorter or plainer prefix, or plainer names of project, query and window",
            )
        if topic in seen:
            other = seen[topic]
            belongs = f", it belongs to window {other.path} already" if other else ""
            raise _refusal(
                project, window, f"two topics would be called {topic!r}{belongs}; change one"
            )
        seen[topic] = window


def _check_connectors(project: Project, prefix: str) -> None:
    """Refuse what an engine could only do wrong."""
    prefixes: list[str] = []
    for window in project.windows.values():
        found: list[str] = []
        for connector in window.connectors:
            if connector.class_ != "kafka":
                continue
            if connector.type in found:
                reason = f"a window has one Kafka connector of type {connector.type}"
                raise _refusal(project, window, reason)
            found.append(connector.type)
            prefixes.append(connector.properties.get("urlhostport", ""))
            kind = connector.properties.get("kafkatype", "csv")
            why = own_format(kind)
            if why:
                reason = f"kafkatype {kind!r} is not supported: {why}"
                raise _refusal(project, window, reason)
    different = list(dict.fromkeys(prefix for prefix in prefixes if prefix))
    if len(different) > 1 and not prefix:
        reason = f"connectors differ in urlhostport: {', '.join(different)}"
        raise _refusal(project, None, reason)


def _refusal(project: Project, window: Window | None, reason: str) -> ModelError:
    if window is None:
        return ModelError([Problem(1, "project", project.name, reason)])
    return ModelError([Problem(window.line, f"window-{window.type}", window.name, reason)])

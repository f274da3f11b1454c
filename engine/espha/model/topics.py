"""Names of the Kafka topics of a deployed model."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from espha.model.connectors import TOPIC
from espha.model.project import Connector, Project, Window


@dataclass(frozen=True, slots=True)
class TopicPlan:
    """The topics of one deployment.

    Attributes:
        prefix: what the names begin with.
        inputs: topic of each source window, by "query/window", in model order.
        outputs: topic of each window with a Kafka connector of type sub, likewise.
        order_log: where order records go.
        dead_letters: where refused records go.
    """

    prefix: str
    inputs: dict[str, str]
    outputs: dict[str, str]
    order_log: str
    dead_letters: str

    def all(self) -> list[str]:
        """All topics: inputs, outputs, order log, dead letters."""
        return [*self.inputs.values(), *self.outputs.values(), self.order_log, self.dead_letters]


def topic_plan(project: Project, prefix: str = "", deployment: str = "default/espha") -> TopicPlan:
    """Say which topics a deployment of `project` has.

    Args:
        project: the model.
        prefix: begins all names; empty: connectors decide (`kafkatopic`, `urlhostport`).
        deployment: "namespace/name", the prefix when nobody else says one.

    Raises:
        ValueError: a name is no Kafka topic, or two topics would have the same name.
    """
    start = prefix or _prefix_of(project) or deployment.replace("/", "_")
    inputs, outputs = {}, {}
    for path, window in project.windows.items():
        pub, sub = window.kafka("pub"), window.kafka("sub")
        if window.kind == "source":
            inputs[path] = _topic(project, window, start, "I", None if prefix else pub)
        if sub is not None:
            outputs[path] = _topic(project, window, start, "O", None if prefix else sub)
    plan = TopicPlan(start, inputs, outputs, f"{start}.M", f"{start}.E")
    _check(plan.all())
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


def _check(topics: Iterable[str]) -> None:
    seen: set[str] = set()
    for topic in topics:
        if not TOPIC.fullmatch(topic):
            raise ValueError(
                f"{topic!r} is no Kafka topic: 1 to 249 letters, digits, dots, _ and -; "
                "use a shorter or plainer prefix"
            )
        if topic in seen:
            raise ValueError(f"two topics would be called {topic!r}; change a kafkatopic")
        seen.add(topic)

"""The operator's own settings: which images it uses, and when it changes those of a deployment."""

from typing import Literal

from pydantic import Field
from pydantic_settings import BaseSettings, SettingsConfigDict

from espha_operator.api.names import image

ImagePolicy = Literal["OnOperatorUpgrade", "Manual"]


class Images(BaseSettings):
    """Images that a deployment does not name, from the environment (`ESPHA_ENGINE_IMAGE`, …).

    Attributes:
        engine_image: of engines and adapters.
        kafka_image: of brokers.
        zookeeper_image: of ZooKeeper servers.
        image_pull_policy: when nodes pull the images.
        image_pull_secrets: names of Secrets in a deployment's namespace that open the registry, as
            a JSON list.
    """

    model_config = SettingsConfigDict(env_prefix="ESPHA_", frozen=True)

    engine_image: str = image("engine")
    kafka_image: str = image("kafka")
    zookeeper_image: str = image("zookeeper")
    image_pull_policy: Literal["Always", "IfNotPresent", "Never"] = "IfNotPresent"
    image_pull_secrets: tuple[str, ...] = ()


class Upgrades(BaseSettings):
    """What an upgrade of the operator does to deployments that run, from the environment.

    Attributes:
        image_policy: of deployments whose spec names none.
        rollout_delay: seconds between the roll-outs of two deployments; 0 lets all roll at once.
    """

    model_config = SettingsConfigDict(env_prefix="ESPHA_", frozen=True)

    image_policy: ImagePolicy = "OnOperatorUpgrade"
    rollout_delay: float = Field(30, ge=0, le=86_400)

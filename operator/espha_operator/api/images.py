"""The operator's own settings: which images it uses when a deployment names none."""

from pydantic_settings import BaseSettings, SettingsConfigDict


class Images(BaseSettings):
    """Default images, from the environment (`ESPHA_ENGINE_IMAGE`, …)."""

    model_config = SettingsConfigDict(env_prefix="ESPHA_", frozen=True)

    engine_image: str = "espha/engine:0.1.0"
    kafka_image: str = "espha/kafka:0.1.0"
    zookeeper_image: str = "espha/zookeeper:0.1.0"

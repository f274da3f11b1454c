"""The operator's own settings: which images it uses when a deployment names none."""

from pydantic_settings import BaseSettings, SettingsConfigDict

from espha_operator.api.names import image


class Images(BaseSettings):
    """Default images, from the environment (`ESPHA_ENGINE_IMAGE`, …)."""

    model_config = SettingsConfigDict(env_prefix="ESPHA_", frozen=True)

    engine_image: str = image("engine")
    kafka_image: str = image("kafka")
    zookeeper_image: str = image("zookeeper")

"""Names that clients of the API rely on."""

from importlib.metadata import version

GROUP = "espha.dev"
VERSION = "v1alpha1"
KIND = "EspHaDeployment"
PLURAL = "esphadeployments"
SHORT = "espha"

RELEASE = version("espha")
"""The version in pyproject.toml: the images' tag, and the chart's version."""

FIELD_MANAGER = "espha-operator"
ROLE_LABEL = "espha.dev/role"
# Annotation of a deployment: which engine is to be active, or "any" other one.
SWITCHOVER = "espha.dev/switchover-to"
# Annotation of a deployment: "true" keeps the operator from changing anything.
PAUSED = "espha.dev/paused"
# Annotation of a StatefulSet: a fingerprint of the spec that the operator has given it.
APPLIED = "espha.dev/applied"
# Annotation of a deployment: a pod that is to be rebuilt with an empty volume.
REPLACE = "espha.dev/replace"
# Annotation of a deployment: the first digits of the digest of an earlier model, which is to run in
# place of the one in the spec.
ROLLBACK = "espha.dev/rollback"
# Label of a ConfigMap with a version of a model, and annotation of it: the digest, short and whole.
MODEL_LABEL = "espha.dev/model"
MODEL_DIGEST = "espha.dev/model-digest"

ZOOKEEPER_PORT = 2181
KAFKA_PORT = 9092
HTTP_PORT = 8080
HEARTBEAT_PORT = 8081
LIFELINE_PORT = 8082


def image(name: str) -> str:
    """Return the name of one of this release's images."""
    return f"espha/{name}:{RELEASE}"

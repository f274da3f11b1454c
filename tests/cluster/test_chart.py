"""manifests/install.yaml is the chart, rendered."""

import os
from pathlib import Path

import pytest

from tools.offline_cluster import clients
from tools.offline_cluster.say import Failure

pytestmark = pytest.mark.cluster
ROOT = Path(__file__).parents[2]
# Without one, a helm that was built here takes the cluster for one of 1.20.
KUBERNETES = "1.34.0"
NAMESPACE = "apiVersion: v1\nkind: Namespace\nmetadata:\n  name: espha-system\n"


def rendered() -> str:
    chart = ROOT / "charts" / "espha"
    options = ("--namespace", "espha-system", "--kube-version", KUBERNETES, "--skip-tests")
    return NAMESPACE + clients.helm("template", "espha", chart, *options)


def test_install_yaml_is_fresh() -> None:
    """ESPHA_GOLDEN=write makes it anew."""
    path = ROOT / "manifests" / "install.yaml"
    if os.environ.get("ESPHA_GOLDEN") == "write":
        path.write_text(rendered())
    assert path.read_text() == rendered()


def test_values_are_checked() -> None:
    chart = ROOT / "charts" / "espha"
    with pytest.raises(Failure) as refused:
        clients.helm(
            "template", "espha", chart, "--kube-version", KUBERNETES, "--set", "image.engine=x"
        )
    assert "additional properties 'image' not allowed" in str(refused.value)

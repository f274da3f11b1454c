"""The chart, and manifests/install.yaml, which is the chart, rendered."""

import shutil
from pathlib import Path

import pytest
import yaml

from tools.chart import INSTALL, install
from tools.offline_cluster import clients
from tools.offline_cluster.say import Failure

pytestmark = pytest.mark.cluster
ROOT = Path(__file__).parents[2]
# Without one, a helm that was built here takes the cluster for one of 1.20.
KUBERNETES = "1.34.0"


def test_install_yaml_is_fresh() -> None:
    """`python -m tools.chart --write` makes it anew, and `make lint` looks, too."""
    assert INSTALL.read_text() == install()


def test_values_are_checked() -> None:
    chart = ROOT / "charts" / "espha"
    with pytest.raises(Failure) as refused:
        clients.helm(
            "template", "espha", chart, "--kube-version", KUBERNETES, "--set", "image.engine=x"
        )
    assert "additional properties 'image' not allowed" in str(refused.value)


@pytest.mark.parametrize("enabled", ["true", "false"])
def test_the_chart_can_be_a_part_of_another(tmp_path: Path, enabled: str) -> None:
    """With a condition, which a strict schema would refuse if it did not know it."""
    chart = tmp_path / "whole"
    (chart / "charts").mkdir(parents=True)
    dependency = {"name": "espha", "version": ">=0.0.0-0", "condition": "espha.enabled"}
    own = {"apiVersion": "v2", "name": "whole", "version": "1.0.0", "dependencies": [dependency]}
    (chart / "Chart.yaml").write_text(yaml.safe_dump(own))
    shutil.copytree(ROOT / "charts" / "espha", chart / "charts" / "espha")
    given = ("--set", f"espha.enabled={enabled}", "--set", "global.imageRegistry=r.example")
    made = clients.helm("template", "whole", chart, "--kube-version", KUBERNETES, *given)
    assert ("kind: Deployment" in made) == (enabled == "true")
    assert ("r.example/espha/operator:" in made) == (enabled == "true")


def test_who_may_not_make_roles_makes_none() -> None:
    chart = ROOT / "charts" / "espha"
    options = ("--kube-version", KUBERNETES, "--skip-tests")
    made = clients.helm("template", "e", chart, *options, "--set", "rbac.create=false")
    kinds = [one["kind"] for one in yaml.safe_load_all(made) if one]
    assert sorted(kinds) == ["CustomResourceDefinition", "Deployment", "ServiceAccount"]
    made = clients.helm("template", "e", chart, *options, "--set", "rbac.aggregate=false")
    assert "aggregate-to" not in made


def test_helm_test_finds_all_well(operator: str) -> None:
    clients.helm("test", "espha", "--namespace", operator, "--timeout", "1m")
    said = clients.kubectl("-n", operator, "logs", "espha-operator-test")
    assert [line[:8] for line in said.splitlines()] == ["ok      "] * 3

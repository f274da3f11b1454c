"""Checks of the chart without a cluster: `python -m tools.chart` (a part of `make lint`).

helm lint, with each of the chart's sets of values; then kubeconform, of all that they make, of the
manifests, and of what the operator makes of a deployment (the golden files of its tests). Last of
all, manifests/install.yaml has to be the chart, rendered; `python -m tools.chart --write` makes it
anew.
"""

import sys
from pathlib import Path

from tools import ROOT, kube_schemas
from tools.offline_cluster import cache, clients, command, golang
from tools.offline_cluster.node import KUBERNETES
from tools.offline_cluster.say import Failure, line, program

KUBECONFORM = "v0.8.0"
CHART = ROOT / "charts" / "espha"
CRD = ROOT / "crds" / "esphadeployments.yaml"
# As an old one is assumed by a helm that was built here.
VERSION = ("--kube-version", KUBERNETES)
INSTALL = ROOT / "manifests" / "install.yaml"
_NAMESPACE = "apiVersion: v1\nkind: Namespace\nmetadata:\n  name: espha-system\n"


def main() -> None:
    """Check the chart and the manifests.

    Raises:
        Failure: something is wrong, with the programs' own words.
    """
    clients.place_helm()
    if "--write" in sys.argv:
        INSTALL.write_text(install())
    sets = [(), *(("--values", path) for path in sorted((CHART / "ci").glob("*.yaml")))]
    for values in sets:
        clients.helm("lint", "--strict", "--quiet", CHART, *VERSION, *values)
    with cache.scratch() as scratch:
        made = [_rendered(scratch / f"{at}.yaml", *values) for at, values in enumerate(sets)]
        told = _conform([*made, *_manifests()], scratch)
    line(f"chart: {len(sets)} sets of values; {told}")
    if INSTALL.read_text() != install():
        raise Failure(
            "manifests/install.yaml is not what the chart makes; write it anew with "
            "python -m tools.chart --write"
        )


def install() -> str:
    """Return what installs the operator without Helm: its namespace, and the chart, rendered."""
    options = ("--namespace", "espha-system", *VERSION, "--skip-tests")
    return _NAMESPACE + clients.helm("template", "espha", CHART, *options)


def _rendered(path: Path, *values: str | Path) -> Path:
    options = ("--namespace", "espha-system", *VERSION, *values)
    path.write_text(clients.helm("template", "espha", CHART, *options))
    return path


def _manifests() -> list[Path]:
    golden = ROOT / "tests" / "unit" / "operator" / "golden"
    return [*ROOT.glob("manifests/*.yaml"), *ROOT.glob("crds/*.yaml"), *golden.glob("*.yaml")]


def _conform(files: list[Path], scratch: Path) -> str:
    """Hold objects against the schemas of their kinds; return how many there were."""
    kubeconform = golang.install(
        "kubeconform", "github.com/yannh/kubeconform/cmd/kubeconform", KUBECONFORM
    )
    kube_schemas.write(kube_schemas.of_crd(CRD), scratch)
    places = (kube_schemas.directory(), scratch)
    name = "{{.ResourceKind}}{{.KindSuffix}}.json"
    options = [word for place in places for word in ("-schema-location", f"{place}/{name}")]
    told = command.run(kubeconform, "-strict", "-summary", *options, *files)
    return told.strip().splitlines()[-1]


if __name__ == "__main__":
    program(main)

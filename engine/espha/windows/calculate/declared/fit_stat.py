"""FitStat: how well a model's predictions fit what came true."""

from collections.abc import Mapping

from espha.windows.calculate.contract import Algorithm, Parameter, Role, Settings, counts, numbers


def _check(settings: Settings, counts: Mapping[str, int]) -> str:
    labels = [label for label in str(settings["classLabels"]).split(",") if label.strip()]
    if labels and len(labels) != counts["inputs"]:
        return f"{len(labels)} classLabels for {counts['inputs']} inputs; give one probability each"
    if not labels and counts["inputs"] != 1:
        return "several inputs are the probabilities of classes; name these in classLabels"
    return ""


ALGORITHM = Algorithm(
    name="FitStat",
    code="fit:FitStat",
    inputs={"inputs": Role(many=True), "response": Role("any")},
    parameters={
        "windowLength": Parameter(0),
        "classLabels": Parameter(""),
        "labelLen": Parameter(0),
    },
    results={
        **counts("nOut", "nmissOut"),
        **numbers("aseOut", "divOut", "raseOut", "mceOut", "mcllOut"),
    },
    check=_check,
    aliases=("FitStatistics",),
)

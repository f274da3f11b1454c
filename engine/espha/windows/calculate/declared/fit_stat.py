"""FitStat: how well a model's predictions fit what came true."""

from collections.abc import Mapping

from espha.windows.calculate.contract import Algorithm, Parameter, Result, Role, Settings


def _check(settings: Settings, counts: Mapping[str, int]) -> str:
    labels = [label for label in str(settings["classLabels"]).split(",") if label.strip()]
    if labels and len(labels) != counts["inputs"]:
        return f"{len(labels)} classLabels for {counts['inputs']} inputs; give one probability each"
    if not labels and counts["inputs"] != 1:
        return "several inputs are the probabilities of classes; name these in classLabels"
    return ""


ALGORITHM = Algorithm(
    name="FitStat",
    code="fit_stat:FitStat",
    inputs={
        "inputs": Role(many=True, note="the predicted number, or the probability of each class"),
        "response": Role("any", note="what came true"),
    },
    parameters={
        "windowLength": Parameter(0, note="how many of the last events count; 0: all"),
        "classLabels": Parameter("", note="the classes, `a,b,c`, in the order of the inputs"),
        "labelLen": Parameter(0, note="has no effect: labels keep their length"),
    },
    results={
        "nOut": Result("count", note="observations"),
        "nmissOut": Result("count", note="events that are none"),
        "aseOut": Result(note="average squared error"),
        "divOut": Result(note="what the sum of squared errors is divided by"),
        "raseOut": Result(note="its root"),
        "mceOut": Result(note="share of wrong classes"),
        "mcllOut": Result(note="multiclass log loss"),
        "maeOut": Result(note="mean absolute error"),
        "rmaeOut": Result(note="its root"),
        "msleOut": Result(note="mean squared error of the logarithms of 1 + the values"),
        "rmsleOut": Result(note="its root"),
    },
    check=_check,
    aliases=("FitStatistics",),
)

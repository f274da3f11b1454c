"""ChangeDetection: whether values are distributed otherwise than before."""

from espha.windows.calculate.contract import MAX_WALKED, Algorithm, Parameter, Result, Role

ALGORITHM = Algorithm(
    name="ChangeDetection",
    code="change_detection:ChangeDetection",
    inputs={"input": Role(note="the field")},
    parameters={
        "refWindowSize": Parameter(500, 2, MAX_WALKED, note="values of the reference"),
        "slidingAlpha": Parameter(0.997, 0.001, 1, note="what a value leaves of those before it"),
        "maxBins": Parameter(100, 2, 1000, note="bins of both histograms"),
        "maxEvalSteps": Parameter(300, 1, note="values between two comparisons"),
        "adaptiveEval": Parameter(False, note="the sooner the more they differed last"),
        "threshold": Parameter(0.05, 1e-9, 1e6, note="beyond it a change is detected"),
        "showEval": Parameter(False, note="each comparison leaves, not only changes"),
        "showAll": Parameter(False, note="each event leaves"),
    },
    results={
        "evaluatedOut": Result("count", note="1 where the histograms are compared"),
        "changeValueOut": Result(note="how much the two directions of the divergence differ"),
        "changeDetectedOut": Result("count", note="1 at a change"),
    },
)

"""ROC: how well a probability foretells an event, at each cutoff."""

from espha.windows.calculate.contract import Algorithm, Parameter, Result, Role

ALGORITHM = Algorithm(
    name="ROC",
    code="roc:Roc",
    inputs={
        "input": Role(note="the predicted probability of the event"),
        "response": Role("any", note="what came true"),
    },
    parameters={
        "windowLength": Parameter(0, note="how many of the last events count; 0: all"),
        "cutStep": Parameter(0.01, 0.001, 1, note="distance of the cutoffs"),
        "event": Parameter("1", note="the response that is the event"),
        "eventLen": Parameter(0, note="has no effect: texts keep their length"),
        "reportInterval": Parameter(1, 1, note="rows leave each so many events"),
    },
    results={
        "binIdOut": Result("count", note="number of the cutoff, from 0"),
        "cutOffOut": Result(note="the cutoff"),
        "tpOut": Result("count", note="true positives"),
        "fpOut": Result("count", note="false positives"),
        "fnOut": Result("count", note="false negatives"),
        "tnOut": Result("count", note="true negatives"),
        "sensitivityOut": Result(note="tp / events"),
        "specificityOut": Result(note="tn / others"),
        "ksOut": Result(note="1 where ks2Out is greatest"),
        "ks2Out": Result(note="sensitivity + specificity - 1"),
        "fHalfOut": Result(note="F with a beta of 0.5"),
        "fprOut": Result(note="fp / others"),
        "accOut": Result(note="share that is right"),
        "fdrOut": Result(note="fp / (tp + fp)"),
        "f1Out": Result(note="F with a beta of 1"),
        "cOut": Result(note="area under the curve"),
        "giniOut": Result(note="2 c - 1"),
        "gammaOut": Result(note="Goodman and Kruskal's gamma"),
        "tauOut": Result(note="Kendall's tau-a"),
        "miscEventOut": Result(note="share that is wrong"),
    },
    rows_by="binIdOut",
)

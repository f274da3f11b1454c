"""ROC: how well a probability foretells an event, at each cutoff."""

from espha.windows.calculate.contract import Algorithm, Parameter, Role, counts, numbers

ALGORITHM = Algorithm(
    name="ROC",
    code="bins:Roc",
    inputs={"input": Role(), "response": Role("any")},
    parameters={
        "windowLength": Parameter(0),
        "cutStep": Parameter(0.01, 0.001, 1),
        "event": Parameter("1"),
        "eventLen": Parameter(0),
        "reportInterval": Parameter(1, 1),
    },
    results={
        **counts("binIdOut", "tpOut", "fpOut", "fnOut", "tnOut"),
        **numbers("cutOffOut", "sensitivityOut", "specificityOut", "ksOut", "ks2Out"),
        **numbers("fHalfOut", "fprOut", "accOut", "fdrOut", "f1Out", "cOut", "giniOut"),
        **numbers("gammaOut", "tauOut", "miscEventOut"),
    },
    rows_by="binIdOut",
)

"""MRR: moving relative range."""

from espha.windows.calculate.contract import Algorithm, Parameter, Result, Role

ALGORITHM = Algorithm(
    name="MRR",
    code="mrr:Mrr",
    inputs={
        "input": Role(note="the field"),
        "timeId": Role("any", needed=False, note="the time of an event"),
    },
    parameters={
        "rangeWindowLength": Parameter(10, 1, note="how many values a range is of"),
        "expRangeWindowLength": Parameter(10, 1, note="how many ranges the expected one is of"),
    },
    results={
        "rangeOut": Result(note="greatest value - least value"),
        "erangeOut": Result(note="the range to be expected: the mean of the last ranges"),
        "mrrOut": Result(note="range / expected range"),
        "timeIdOut": Result("any", repeats="timeId", note="the time of the event"),
    },
)

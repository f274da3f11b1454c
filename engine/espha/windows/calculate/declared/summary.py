"""Summary: statistics of one field."""

from typing import Final

from espha.windows.calculate.contract import Algorithm, Parameter, Result, Role

_PERCENTS: Final = (1, 5, 10, 20, 25, 30, 40, 50, 60, 70, 75, 80, 90, 95, 99)

ALGORITHM = Algorithm(
    name="Summary",
    code="summary:Summary",
    inputs={"input": Role(note="the field")},
    parameters={
        "windowLength": Parameter(0, note="how many of the last events count; 0: all"),
        "alpha": Parameter(0.05, 0, 1, note="1 - the confidence of lclmOut and uclmOut"),
        "sampleEntropyTemplateLength": Parameter(2, 1, 100, note="length of the rows compared"),
        "sampleEntropyTolerance": Parameter(0.2, 0, 1e300, note="how far alike values can be"),
        "sampleEntropyNormalize": Parameter(True, note="the tolerance is in deviations"),
    },
    results={
        "nOut": Result("count", note="observations"),
        "nmissOut": Result("count", note="events with a null"),
        "minOut": Result(note="least value"),
        "maxOut": Result(note="greatest value"),
        "rangeOut": Result(note="their distance"),
        "sumOut": Result(note="sum"),
        "meanOut": Result(note="mean"),
        "stdOut": Result(note="standard deviation"),
        "varOut": Result(note="variance"),
        "cssOut": Result(note="corrected sum of squares"),
        "ussOut": Result(note="uncorrected sum of squares"),
        "stderrOut": Result(note="standard error of the mean"),
        "cvOut": Result(note="coefficient of variation, in percent"),
        "lclmOut": Result(note="lower confidence limit of the mean"),
        "uclmOut": Result(note="upper confidence limit of the mean"),
        "tValueOut": Result(note="Student's t of a mean of 0"),
        "probTOut": Result(note="its probability, two-sided"),
        "skewnessOut": Result(note="skewness"),
        "kurtosisOut": Result(note="kurtosis"),
        "modeOut": Result(note="most frequent value"),
        "q1Out": Result(note="lower quartile"),
        "medianOut": Result(note="median"),
        "q3Out": Result(note="upper quartile"),
        "qrangeOut": Result(note="distance of the quartiles"),
        **{f"p{each}Out": Result(note=f"percentile {each}") for each in _PERCENTS},
        "sampleEntropyOut": Result(note="sample entropy"),
    },
)

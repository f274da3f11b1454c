"""STFT: the short-time Fourier transform of a signal."""

from collections.abc import Mapping

from espha.windows.calculate.contract import Algorithm, Parameter, Result, Settings, counts
from espha.windows.calculate.declared.pieces import INPUTS, PIECES, check_pieces

MAX_LENGTH = 65_536


def _check(settings: Settings, counts: Mapping[str, int]) -> str:
    size = int(settings["fftLength"])
    if size < int(settings["windowLength"]):
        return "fftLength must be at least windowLength"
    if int(settings["binsInSchema"]) > size:
        return "binsInSchema must be at most fftLength"
    return check_pieces(settings, counts)


ALGORITHM = Algorithm(
    name="STFT",
    code="spectra:Stft",
    inputs=INPUTS,
    parameters={
        **PIECES,
        "fftLength": Parameter(256, 1, MAX_LENGTH, note="zeros are appended up to this length"),
        "binsInSchema": Parameter(256, 1, MAX_LENGTH, note="how many frequencies are written"),
    },
    results={
        "timeIdOut": Result("any", repeats="timeId", note="time of the last sample"),
        "keyOut": Result("count", unique=True, note="number of the row, from 0"),
        **counts("binOut"),
        "powerOut": Result(note="squared magnitude"),
        "phaseOut": Result(note="angle, from -π to π"),
        "powerListOut": Result(many=True, note="all powers in one row"),
        "phaseListOut": Result(many=True, note="all angles in one row"),
    },
    rows_by="binOut",
    check=_check,
    aliases=("ShortTimeFourierTransform",),
)

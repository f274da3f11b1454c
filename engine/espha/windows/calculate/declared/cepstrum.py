"""Cepstrum: the spectrum of the logarithm of a spectrum."""

from espha.windows.calculate.contract import Algorithm, Parameter, Result
from espha.windows.calculate.declared.pieces import INPUTS, PIECES, check_pieces

ALGORITHM = Algorithm(
    name="Cepstrum",
    code="spectra:Cepstrum",
    inputs=INPUTS,
    parameters={
        **PIECES,
        "complexCepstrum": Parameter(False, note="with the phase, not of magnitudes alone"),
    },
    results={
        "timeIdOut": Result("any", repeats="timeId", note="time of the last sample"),
        "cepstrumListOut": Result(many=True, note="windowLength values"),
    },
    check=check_pieces,
)

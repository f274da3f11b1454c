"""Calculate windows for tests: a project with one, and a kernel that gives its results."""

from typing import Any

from espha.kernel import Kernel
from espha.model import Project
from espha.model.events import Event
from espha.windows.calculate.declared import ALGORITHMS
from support.models import SUB, behind

IN = "id*:int64,x:double,y:double,s:string,g:string"
BLOB = ",b:blob"
INPUTS = {
    "Summary": {"input": "x"},
    "Correlation": {"x": "x", "y": "y"},
    "SegmentedCorrelation": {"x": "x", "indicator": "y"},
    "FitStat": {"inputs": "x", "response": "y"},
    "MRR": {"input": "x", "timeId": "id"},
    "Histogram": {"input": "x"},
    "ROC": {"input": "x", "response": "s"},
    "ChangeDetection": {"input": "x"},
    "DistributionFitting": {"x": "x"},
    "LagMonitor": {"input": "x", "target": "y", "timeId": "id"},
    "Tutorial": {"input": "x"},
    "STFT": {"input": "x", "timeId": "id"},
    "Cepstrum": {"input": "x", "timeId": "id"},
    "SST": {"inputs": "x,y"},
    "Tokenization": {"docId": "id", "doc": "s"},
    "TFIDF": {"docId": "g", "token": "s"},
    "TextVectorization": {"docId": "g", "token": "s"},
    "ImageProcessing": {"imageInput": "b"},
}
"""What is looked at in tests, by algorithm."""
TYPES = {"count": "int64", "number": "double", "any": "string", "text": "string", "blob": "blob"}


def block(tag: str, values: dict[str, Any]) -> str:
    """Return a map of a calculate window."""
    inline = {"wordVec": ' inline="true"'}
    texts = "".join(
        f'<property name="{name}"{inline.get(name, "")}>{value}</property>'
        for name, value in values.items()
    )
    return f"<{tag}><properties>{texts}</properties></{tag}>"


def project(
    algorithm: str,
    *,
    inputs: dict[str, Any] | None = None,
    outputs: dict[str, str] | None = None,
    schema: str = "",
    index: str = "pi_EMPTY",
    **parameters: Any,
) -> Project:
    """Return a project with a calculate window `out`; by default all results leave."""
    results = ALGORITHMS[algorithm].results
    outputs = outputs or {name: name for name in results}
    apart = ALGORITHMS[algorithm].rows_by
    types = {
        name: "array(dbl)" if each.many else TYPES[each.kind] for name, each in results.items()
    }
    fields = [
        f"{field}{'*' if name == apart else ''}:{types[name]}"
        for name, field in outputs.items()
        if name in results
    ]
    window = (
        f'<window-calculate name="out" algorithm="{algorithm}">'
        f"<schema-string>{schema or ','.join(['id*:int64', *fields])}</schema-string>"
        + block("parameters", parameters)
        + block("input-map", inputs or INPUTS[algorithm])
        + block("output-map", outputs)
        + f"{SUB}</window-calculate>"
    )
    takes_blobs = any(role.kind == "blob" for role in ALGORITHMS[algorithm].inputs.values())
    return behind(IN + BLOB if takes_blobs else IN, window, index=index)


class Run:
    """A kernel with a calculate window; each event gives dictionaries of results."""

    def __init__(self, algorithm: str, **options: Any) -> None:
        self.project = project(algorithm, **options)
        self.kernel = Kernel(self.project)
        self.names = [field.name for field in self.project.windows["q/out"].fields]
        self.next = 0

    def rows(
        self, x: Any = None, y: Any = None, s: Any = None, g: Any = None, b: Any = None
    ) -> list[Any]:
        """Publish one event; return a dictionary for each row, without the event's key."""
        self.next += 1
        values = (self.next, x, y, s, g, b)[: len(self.project.windows["q/in"].fields)]
        outputs = self.kernel.publish("q/in", Event("I", "N", values), 0)
        assert self.kernel.take_refusals() == []
        return [
            {k: v for k, v in zip(self.names, event.values, strict=True) if k != "id"}
            for _, event in outputs
        ]

    def row(self, *values: Any) -> Any:
        """Publish one event that gives one row."""
        (row,) = self.rows(*values)
        return row

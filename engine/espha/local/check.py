"""`espha local verify`: the checker, told what it must know of a deployment."""

from espha.checker.command import VerifyOptions, run_verify
from espha.local.errors import LocalError
from espha.local.state import PREFIX, Folder


def verify(folder: Folder, sums: tuple[str, ...], *, as_json: bool) -> int:
    """Run the checker; return its exit code.

    Raises:
        LocalError: there is no deployment, or it does not run.
    """
    spec = checks(folder, sums)
    if not folder.is_held():
        raise LocalError("the deployment does not run: `espha local up` first")
    return run_verify(spec, as_json)


def checks(folder: Folder, sums: tuple[str, ...], until_idle: float | None = None) -> VerifyOptions:
    """Return what the checker is told; without sums, the order log's digests are what counts."""
    spec = folder.spec()
    sums = sums or spec.sums
    one = bool(sums) and len(spec.inputs) == 1 and len(spec.outputs) == 1
    return VerifyOptions(
        bootstrap=spec.bootstrap,
        model=folder.model,
        prefix=PREFIX,
        deployment=f"local/{spec.name}",
        sums=sums,
        source_file=spec.inputs[0].file.path if one else None,
        header_lines=spec.inputs[0].file.header_lines if one else 1,
        result_file=spec.outputs[0].file.path if one else None,
        faults=folder.faults,
        until_idle=until_idle,
        values=bool(sums),
    )

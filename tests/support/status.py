"""Statuses of engines, as their supervisors show them."""

from espha.protocol.states import EngineState, Role
from espha.protocol.status import AdapterProgress, EngineProgress, ReplicaStatus

MODEL_DIGEST = "9f2c" + 60 * "0"


def engine_status(
    name: str,
    state: EngineState = EngineState.STANDBY,
    *,
    in_sync: bool = True,
    sequence: int = 9,
    epoch: int = 2,
    active: str = "",
    message: str = "",
    diverged: str = "",
    snapshot_age_s: float | None = None,
    model_digest: str = MODEL_DIGEST,
) -> ReplicaStatus:
    """Return the status of an engine, of which a test says only what it is about."""
    return ReplicaStatus(
        name=name,
        role=Role.ACTIVE if state is EngineState.ACTIVE else Role.STANDBY,
        state=state,
        in_sync=in_sync,
        message=message,
        diverged=diverged,
        snapshot_age_s=snapshot_age_s,
        progress=EngineProgress(
            sequence=sequence,
            epoch=epoch,
            active=active,
            model=f"p@{model_digest[:4]}",
            model_digest=model_digest,
            replayed=0,
        ),
    )


def adapter_status(
    name: str,
    state: EngineState = EngineState.ACTIVE,
    *,
    in_sync: bool = True,
    message: str = "",
    znode: str = "",
    last_error_at: float | None = None,
    progress: AdapterProgress | None = None,
) -> ReplicaStatus:
    """Return the status of an adapter, of which a test says only what it is about."""
    return ReplicaStatus(
        name=name,
        role=Role.ACTIVE if state is EngineState.ACTIVE else Role.STANDBY,
        state=state,
        in_sync=in_sync,
        message=message,
        znode=znode or None,
        last_error="" if last_error_at is None else f"error of {name}",
        last_error_at=last_error_at,
        progress=progress,
    )

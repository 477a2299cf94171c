"""One step worked out for many sheets at once: every operand with one more axis in front."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from attncli.arithmetic import Arithmetic, Value
from attncli.core.graph import Params


def side_by_side(
    compute: Callable[..., Value],
    xp: Arithmetic,
    operands: Sequence[Value],
    own_ndims: Sequence[int],
    params: Params,
) -> Value:
    """What `compute` gives for every sheet, one behind the other: (sheet, …the result's own axes).

    Parameters
    ----------
    operands : each with a leading axis of sheets, of length 1 where all share it
    own_ndims : how many axes each has without that; where it is fewer than the most, axes of length 1 are put
        between the sheets and its own, so that a mask of all heads (sheet query key) does not meet the heads of scores
        (sheet head query key)
    """
    if not operands:
        shared = compute(xp, **params)
        return xp.reshape(shared, (1, *shared.shape))
    widest = max(own_ndims)
    return compute(
        xp, *[_wide(xp, value, own, widest) for value, own in zip(operands, own_ndims, strict=True)], **params
    )


def _wide(xp: Arithmetic, value: Value, own: int, widest: int) -> Value:
    if own == widest:
        return value
    return xp.reshape(value, (value.shape[0], *(1,) * (widest - own), *value.shape[1:]))

"""Many sheets of one problem side by side: which of them are plainly right, and which lines of the others.

All sheets go through the interval evaluation together, along a leading axis, whichever steps each of them has
written down, with the very rules of marking one. Bounds are rounded outwards, in company by a unit in the last place
of a float more at most; a tie lies inside either way, and a decimal number that is none lies nowhere near. Sheets that
are not right in every cell are marked one by one, with what was found here taken over.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from attncli.arithmetic.interval import Interval
from attncli.marking.company import Company, Seen
from attncli.marking.spread import loose as is_loose
from attncli.problems.answers import Answer
from attncli.problems.written import around, has_fewer, meets

if TYPE_CHECKING:
    from attncli.marking.mark import Marker

#: Cells of a step above which sheets gain nothing from company.
_MOST_CELLS = 256


class Batch:
    """Recognises right sheets of one marker's problem side by side."""

    def __init__(self, marker: Marker) -> None:
        self.marker = marker
        self.graph = marker.graph
        self._works: bool | None = None

    def seen(self, sheets: Sequence[Mapping[str, Answer]]) -> list[Seen | None]:
        """What is known of each sheet from company; nothing of an empty one, or of one that needs a closer look."""
        found: list[Seen | None] = [None] * len(sheets)
        fit = [i for i, answers in enumerate(sheets) if answers and all(self._fits(*one) for one in answers.items())]
        if len(fit) < 2 or not self.works():
            return found
        company = self._judged([sheets[i] for i in fit])
        for place, i in enumerate(fit):
            found[i] = Seen(company, place)
        return found

    def _fits(self, id: str, answer: Answer) -> bool:
        """Whether an answer is a full matrix that a person wrote for a step, to all its places, a vector in either direction."""
        matrix = answer.matrix
        if matrix is None or answer.eps is not None or matrix.blank is not None or id not in self.graph.steps:
            return False
        if matrix.decimals is not None and has_fewer(matrix.decimals, self.marker.problem.decimals_of(id)):
            return False
        expected, shape = self.marker.shapes[id], matrix.values.shape
        if shape == expected:
            return True
        flat = [size for size in expected if size != 1], [size for size in shape if size != 1]
        return len(flat[0]) <= 1 and flat[0] == flat[1]

    def works(self) -> bool:
        """Whether this graph's steps can be worked out side by side: tried once, on two copies of the right numbers."""
        if self._works is None:
            self._works = all(step.cells <= _MOST_CELLS for step in self.graph.steps.values()) and self._agrees()
        return self._works

    def _agrees(self) -> bool:
        chain = self.marker.right(None)
        try:
            for step in self.graph.steps.values():
                alone = [chain.carried(id) for id in step.inputs]
                two = [
                    Interval(np.stack([a.lo, a.lo]), np.stack([a.hi, a.hi])) if id in self.graph.steps else a
                    for id, a in zip(step.inputs, alone, strict=True)
                ]
                both = step.op.compute(chain.arithmetic, *two, **step.params)
                one = chain.raw(step.id)
                for i in range(2 if both.ndim > one.ndim else 0):
                    close = np.isclose(both.lo[i], one.lo, rtol=1e-9, atol=1e-12)
                    if not (close & np.isclose(both.hi[i], one.hi, rtol=1e-9, atol=1e-12)).all():
                        return False
                if both.ndim == one.ndim and both.shape != one.shape:
                    return False
        except (ValueError, IndexError, TypeError):
            return False
        return True

    def _shapes(self, ids: Sequence[str]) -> list[tuple[int, ...] | None]:
        """The shapes of steps; None for an input, which all sheets share."""
        return [self.marker.shapes[id] if id in self.graph.steps else None for id in ids]

    def _judged(self, sheets: Sequence[Mapping[str, Answer]]) -> Company:
        """Which lines of which sheets are right, by one evaluation of all.

        A line that is not right is left alone: the right number goes on, as where a sheet is marked by itself.
        """
        chain = self.marker.right(None)
        count = len(sheets)
        company = Company(count)
        last = max((i for i, id in enumerate(self.graph.steps) if any(id in sheet for sheet in sheets)), default=-1)
        carried: dict[str, Interval] = {id: chain.carried(id) for id in self.graph.inputs}
        touched: set[str] = set()
        for step in list(self.graph.steps.values())[: last + 1]:
            id = step.id
            if touched.isdisjoint(step.inputs):
                raw, settled = chain.raw(id), chain.carried(id)
            else:
                operands = _in_company([carried[i] for i in step.inputs], self._shapes(step.inputs), count)
                raw = step.op.compute(chain.arithmetic, *operands, **step.params)
                settled = None
                # Bounds that say little are cut down where a sheet is marked by itself.
                wide = is_loose(raw, chain.unit(id))
                stacked = raw.ndim > len(self.marker.shapes[id])
                company.sure &= ~wide.reshape(count, -1).any(-1) if stacked else not wide.any()
            has = np.array([id in sheet for sheet in sheets])
            if not has.any():
                carried[id] = self.marker.settle(id, raw) if settled is None else settled
                if settled is None:
                    touched.add(id)
                continue
            touched.add(id)
            shape = self.marker.shapes[id]
            values = np.zeros((count, *shape))
            for i in np.flatnonzero(has).tolist():
                matrix = sheets[i][id].matrix
                assert matrix is not None
                values[i] = matrix.values.reshape(shape)
            half = 0.5 * 10.0 ** -self.marker.problem.decimals_of(id)
            asked = around(values, half)
            fine = meets(asked, raw).reshape(count, -1).all(-1) & has
            company.add(id, raw, fine, ~has, raw.ndim > len(shape))
            stands = Interval(
                np.minimum(np.maximum(asked.lo, raw.lo), values), np.maximum(np.minimum(asked.hi, raw.hi), values)
            )
            if fine.all():
                carried[id] = stands
            else:
                loose = self.marker.settle(id, raw) if settled is None else settled
                where = fine.reshape(count, *(1 for _ in shape))
                carried[id] = Interval(np.where(where, stands.lo, loose.lo), np.where(where, stands.hi, loose.hi))
            if not company.sure.any():
                break
        company.carried = {id: one for id, one in carried.items() if one.ndim > len(self.marker.shapes[id])}
        return company


def _in_company(
    operands: Sequence[Interval], shapes: Sequence[tuple[int, ...] | None], count: int
) -> Sequence[Interval]:
    """The operands of a step with a leading axis for the sheets on every step among them, or on none."""
    alone = [
        i
        for i, (one, shape) in enumerate(zip(operands, shapes, strict=True))
        if shape is not None and one.shape == shape
    ]
    if not alone or len(alone) == len(operands):
        return operands
    lifted = list(operands)
    for i in alone:
        lo, hi = operands[i].lo, operands[i].hi
        lifted[i] = Interval(np.broadcast_to(lo, (count, *lo.shape)), np.broadcast_to(hi, (count, *hi.shape)))
    return lifted

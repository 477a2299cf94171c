"""A key: what stands on a right sheet, how far right numbers may lie apart, and what each mistake would have given."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from attncli.arithmetic import Arithmetic
from attncli.arithmetic.hand import Hand, round_decimal
from attncli.core.message import Message
from attncli.core.record import Record
from attncli.marking.chain import MISFITS, Chain
from attncli.marking.habits import Habit
from attncli.marking.mark import Marker
from attncli.marking.seeds import hull
from attncli.mistakes import did
from attncli.worksheets.certificate import Wrong, wrong_sheets


class Instead(Record):
    """What a mistake gives at the first line that shows it.

    Parameters
    ----------
    ids : all mistakes that come to these numbers
    said : what was done
    values : what is then written
    """

    ids: tuple[str, ...]
    said: tuple[Message, ...]
    values: Any


class KeyLine(Record):
    """One line of the key.

    Parameters
    ----------
    values : carried on by hand: what a learner writes who rounds every line
    least, most : between these lie the numbers of those who round elsewhere, all of them right
    wrong : what mistakes would have given
    """

    step: str
    values: Any
    least: Any
    most: Any
    wrong: tuple[Instead, ...]

    @property
    def is_sharp(self) -> bool:
        """Whether there is only one right number in every cell."""
        return bool((self.least == self.most).all())


class _Written(Habit):
    """Every line is rounded as it is written; √d_k comes from the calculator: 3/√2 is 2.121, not 3/1.414 = 2.122."""

    def arithmetic(self, decimals: int) -> Arithmetic:
        return Hand(decimals)


_WRITTEN = _Written("carried", 0)


def key_of(marker: Marker, asked: Sequence[str]) -> dict[str, KeyLine]:
    """The key of everything that is asked for."""
    chain = Chain(marker.setting, _WRITTEN)
    with np.errstate(all="ignore"):
        right = {id: chain.carried(id)[0] for id in asked}
        spans = {id: _span(marker, id, right[id]) for id in asked}
    wrong: dict[str, list[Instead]] = {id: [] for id in asked}
    for one in wrong_sheets(marker, chain):
        if isinstance(one, Wrong):
            at = next((id for id, value in one.lines.items() if not _same(value, right[id])), None)
            if at is not None and np.isfinite(one.lines[at]).any():
                unit = 10.0 ** -marker.setting.places[at]
                _note(wrong[at], one, one.lines[at], did(one.id, marker.graph, one.step), _NEAR * unit)
    return {id: KeyLine(id, right[id], *spans[id], tuple(wrong[id])) for id in asked}


#: Share of the distance between mixed learners by which others may lie beyond them.
_WIDENED = 0.5
#: Units of the last place within which two ways of one mistake are not told apart in the key.
_NEAR = 2.5


def _note(known: list[Instead], one: Wrong, values: Any, said: Message, near: float) -> None:
    for at, before in enumerate(known):
        if (
            before.ids == (one.id,)
            and before.values.shape == values.shape
            and np.allclose(before.values, values, 0, near)
        ):
            return
        if _same(before.values, values):
            if one.id not in before.ids:
                known[at] = Instead((*before.ids, one.id), (*before.said, said), values)
            return
    known.append(Instead((one.id,), (said,), values))


def _same(one: Any, other: Any) -> bool:
    return one.shape == other.shape and bool((one == other).all())


def _span(marker: Marker, id: str, right: Any) -> tuple[Any, Any]:
    """The smallest and the largest number that a person comes to who makes no mistake, rounded.

    Of the habits that marking knows, and of learners who mix them from line to line; where these do not agree, also what
    lies beyond by their distance, as in marking.
    """
    places = marker.setting.places[id]
    head = marker.head(None)
    try:
        raws = [np.broadcast_to(one[0], right.shape) for one in head.raws(id)]
        mixed = [one[0] for one in hull(head.chains[0], np.array([0]), id, {})] if id in marker.graph.steps else []
    except MISFITS:
        raws, mixed = [], []
    rounded = np.stack([right, *(round_decimal(one, places) for one in (*raws, *mixed))])
    least, most = rounded.min(0), rounded.max(0)
    apart = least != most
    unit = 10.0**-places
    for numbers, share in ((raws, 1.0), (mixed, _WIDENED)):
        if not numbers:
            continue
        stack = np.stack(numbers)
        low, high = stack.min(0), stack.max(0)
        beyond = share * np.where(np.isfinite(high - low), high - low, 0.0)
        least = np.where(apart, np.minimum(least, np.ceil((low - beyond) / unit) * unit), least)
        most = np.where(apart, np.maximum(most, np.floor((high + beyond) / unit) * unit), most)
    return round_decimal(least, places), round_decimal(most, places)

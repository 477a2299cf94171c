"""Other ways that are right too: another order that ends in the same place."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from types import MappingProxyType

import numpy as np

from attncli.arithmetic import Arithmetic, Value
from attncli.core.graph import Graph, Step, Swap
from attncli.core.matrix import BoolArray, FloatArray, as_matrix
from attncli.core.message import N_, Message
from attncli.core.record import Record
from attncli.mistakes.mistake import backward_of, instead, passing, step_of, steps_of, together, with_operands
from attncli.ops.elementwise import numeral

#: How well a constant must be known to be one: so far, or so many units.
_SURE = 0.25
_SURE_UNITS = 6
#: Units within which it may be the maximum all the same.
_USUAL = 1.5
#: Decimals that a constant may have.
_MOST_DECIMALS = 12
#: What is put down to the computer where all fits by a hair, in units.
_TIE = 1e-7

#: Said where another constant was taken away.
OTHER_CONSTANT = N_("Right: you took away a constant of your own. Any constant leaves the weights as they are.")


class Route(Record):
    """Another right way: what is calculated instead, and a word on it.

    Parameters
    ----------
    id : its name in JSON
    swap : what is calculated instead, by step id
    after : what must have been calculated instead before, for this way to be open
    moved : steps that are done elsewhere on this way; nobody does them twice
    at_hand : with all digits it is the usual way, so it shows in its own line and the next, if at all
    """

    id: str
    swap: dict[str, Swap]
    said: Message
    after: Mapping[str, Swap] = MappingProxyType({})
    moved: frozenset[str] = frozenset()
    at_hand: bool = False

    def is_open(self, gone: Mapping[str, Swap]) -> bool:
        """Whether the way that this one goes on from was gone."""
        return all(gone.get(step_id) is swap for step_id, swap in self.after.items())


def routes(graph: Graph) -> Iterator[Route]:
    """The routes through the softmaxes, scales, masks and norms of a graph."""
    for step in graph.steps.values():
        if step.phase == "forward" and step.op.name in _ROUTES:
            yield from _ROUTES[step.op.name](graph, step)
    for softmax in softmaxes(graph):
        yield from _by_jacobian(graph, softmax)


def _of(step: Step, xp: Arithmetic, *operands: Value) -> Value:
    """What a step calculates, of these operands."""
    return step.op.compute(xp, *operands, **step.params)


def _user(graph: Graph, op: str, step_id: str) -> Step | None:
    """The step of this kind that works on another one."""
    return next(steps_of(graph, op, using=step_id), None)


# --- softmax ----------------------------------------------------------------------------------------------------------


def _without_maximum(graph: Graph, step: Step) -> Iterator[Route]:
    shifted = _user(graph, "subtract", step.id)
    if shifted is None:
        return
    source = shifted.inputs[0]
    said = N_(
        "Right: you did not subtract the maximum. The weights are the same; with large scores e^x would overflow."
    )
    yield Route("maximum-left-out", instead(step, _zero_a_row, source), Message(said))
    masked = step_of(graph, source, "mask")
    if masked is not None:
        said = N_(
            "Right on paper: you took the maximum before masking. On a computer a large hidden score can then wipe out a {row}."
        )
        yield Route("maximum-before-mask", with_operands(step, step.op, masked.inputs[:1], {}), Message(said))
    said = N_("Right: you subtracted one maximum from the whole matrix. Any constant leaves the weights as they are.")
    yield Route("one-maximum", instead(step, _spread_maximum, source), Message(said))


def _zero_a_row(xp: Arithmetic, scores: Value) -> Value:
    return xp.constant(as_matrix(np.zeros((*scores.shape[:-1], 1))))


def _spread_maximum(xp: Arithmetic, scores: Value) -> Value:
    """The maximum of the whole matrix, once a row."""
    return xp.repeat(xp.max(xp.max(scores, -1), -2), scores.shape[-2], -2)


class Softmax(Record):
    """The lines of one softmax, as the usual way has them, and where scores are masked before it.

    Parameters
    ----------
    before : the scores before they were masked; None where they are not
    """

    row_max: str
    shifted: str
    exp: str
    row_sum: str
    weights: str
    before: str | None


def softmaxes(graph: Graph) -> Iterator[Softmax]:
    """Every softmax that takes away a maximum."""
    for maximum in steps_of(graph, "row_max"):
        shifted = _user(graph, "subtract", maximum.id)
        exp = shifted and _user(graph, "exp", shifted.id)
        row_sum = exp and _user(graph, "row_sum", exp.id)
        weights = row_sum and _user(graph, "divide", row_sum.id)
        if shifted and exp and row_sum and weights:
            masked = step_of(graph, shifted.inputs[0], "mask")
            before = None if masked is None else masked.inputs[0]
            yield Softmax(maximum.id, shifted.id, exp.id, row_sum.id, weights.id, before)


def _by_jacobian(graph: Graph, softmax: Softmax) -> Iterator[Route]:
    """The gradient of the scores as a product with the Jacobian diag(a) − a aᵀ of each line, written down first."""
    said = N_("Right: you multiplied by the Jacobian of the softmax. The usual way never writes that matrix down.")
    for step in steps_of(graph, "multiply", using=softmax.weights):
        deviation = step_of(graph, step.inputs[1], "subtract")
        if deviation is not None and deviation.phase != "forward":
            swap = instead(step, _jacobian_product, deviation.inputs[0], step.inputs[0])
            yield Route("by-jacobian", swap, Message(said), at_hand=True)


def _jacobian_product(xp: Arithmetic, upstream: Value, a: Value) -> Value:
    ones = xp.constant(as_matrix(np.eye(a.shape[-1])))
    jacobian = xp.round_step(xp.multiply(a[..., None], xp.subtract(ones, a[..., None, :])))
    return xp.sum(xp.multiply(jacobian, upstream[..., None, :]), -1)[..., 0]


# --- the scale earlier ------------------------------------------------------------------------------------------------


def _queries_scaled(graph: Graph, step: Step) -> Iterator[Route]:
    scores = step_of(graph, step.inputs[0], "product")
    if scores is None:
        return

    def scaled_early(xp: Arithmetic, q: Value, k: Value) -> Value:
        return _of(scores, xp, xp.round_intermediate(_of(step, xp, q)), k)

    early = Route(
        "query-scaled",
        together(instead(scores, scaled_early, *scores.inputs), passing(step, scores.id)),
        Message("Right: you scaled before the product. A factor may go in at either place."),
        moved=frozenset([step.id]),
    )
    yield early
    yield from _queries_scaled_back(graph, step, scores, early)


def _queries_scaled_back(graph: Graph, step: Step, scores: Step, early: Route) -> Iterator[Route]:
    """The way back for scores that hold the factor already: it comes in behind them, at the queries."""
    back = backward_of(graph, scores.id)
    if back is None or back.op is not step.op:
        return
    swaps = [passing(back, back.inputs[0])]
    for after in steps_of(graph, "product", using=back.id):
        scaled = _scaled_query if after.inputs[1] == scores.inputs[0] else _scaled_result
        swaps.append(instead(after, partial(scaled, step, after), *after.inputs))
    said = Message("Right: your scores were scaled already, so this is their gradient; the factor comes in at Q.")
    yield Route("query-scaled-back", together(*swaps), said, early.swap)


def _scaled_query(scale: Step, product: Step, xp: Arithmetic, g: Value, q: Value) -> Value:
    return _of(product, xp, g, xp.round_intermediate(_of(scale, xp, q)))


def _scaled_result(scale: Step, product: Step, xp: Arithmetic, g: Value, k: Value) -> Value:
    return _of(scale, xp, xp.round_intermediate(_of(product, xp, g, k)))


# --- the variance from squares ----------------------------------------------------------------------------------------


def _from_mean_squares(graph: Graph, step: Step) -> Iterator[Route]:
    """The mean of the squares less the square of the mean."""
    centred = step_of(graph, step.inputs[0], "centre")
    if centred is None:
        return

    def less_squared_mean(xp: Arithmetic, x: Value, mean: Value) -> Value:
        return xp.subtract(xp.round_intermediate(_of(step, xp, x)), xp.round_intermediate(xp.multiply(mean, mean)))

    said = N_("Right: you took the mean of the squares minus the square of the mean. That is the variance, too.")
    yield Route("mean-of-squares", instead(step, less_squared_mean, *centred.inputs), Message(said), at_hand=True)


# --- the mask earlier, or filled in -----------------------------------------------------------------------------------


def _masked_otherwise(graph: Graph, step: Step) -> Iterator[Route]:
    mask = graph.inputs[step.inputs[1]].matrix.values
    scaled = step_of(graph, step.inputs[0], "scale")
    if scaled is not None and np.isin(mask, (0.0, -np.inf)).all():
        yield from _mask_first(graph, step, scaled)
    if np.isneginf(mask).any():
        yield from _filled_on_the_way_back(graph, step)


def _mask_first(graph: Graph, step: Step, scaled: Step) -> Iterator[Route]:
    """S + M, and then the scale: what is written as `masked` is scaled already, or it is scaled afterwards."""
    scores, mask = scaled.inputs[0], step.inputs[1]

    def masked_then_scaled(xp: Arithmetic, s: Value, m: Value) -> Value:
        return _of(scaled, xp, xp.round_step(xp.add(s, m)))

    said = Message("Right: you masked before scaling. −∞ stays −∞ whichever comes first.")
    early = instead(scaled, masked_then_scaled, scores, mask)
    yield Route("mask-before-scale", together(early, passing(step, scaled.id)), said)
    bare = with_operands(step, step.op, (scores, mask), step.params)
    after = together(bare, _scaled_behind(graph, step, scaled))
    for also in (early, {}):
        yield Route("mask-before-scale", together(also, after), said, moved=frozenset([scaled.id]))
    yield from _mask_first_back(graph, step, scaled, after)


def _scaled_behind(graph: Graph, masked: Step, scaled: Step) -> dict[str, Swap]:
    """What comes after masked scores that are not scaled yet: their maximum, and they less their maximum."""

    def greatest(xp: Arithmetic, s: Value) -> Value:
        return xp.max(xp.round_step(_of(scaled, xp, s)), -1)

    def less(xp: Arithmetic, s: Value, top: Value, *, shifted: Step) -> Value:
        return _of(shifted, xp, xp.round_step(_of(scaled, xp, s)), top)

    swaps = []
    for top in steps_of(graph, "row_max"):
        shifted = _user(graph, "subtract", top.id)
        if shifted is not None and shifted.inputs[0] == masked.id:
            swaps += [instead(top, greatest, masked.id), instead(shifted, less, *shifted.inputs, shifted=shifted)]
    return together(*swaps)


def _mask_first_back(graph: Graph, masked: Step, scaled: Step, after: Mapping[str, Swap]) -> Iterator[Route]:
    """The way back in that order: through the scale first, then past the mask."""
    first, second, third = (backward_of(graph, step_id) for step_id in (masked.id, scaled.id, scaled.inputs[0]))
    if first is None or second is None or third is None or third.op is not scaled.op:
        return

    def through_scale(xp: Arithmetic, *operands: Value) -> Value:
        return _of(third, xp, xp.round_step(_of(first, xp, *operands)))

    swap = together(
        instead(first, through_scale, *first.inputs),
        with_operands(second, first.op, first.inputs, first.params),
        passing(third, first.id),
    )
    said = Message("Right: you masked before scaling, so on the way back the scale comes before the mask.")
    yield Route("mask-before-scale-back", swap, said, after)


def _filled_on_the_way_back(graph: Graph, step: Step) -> Iterator[Route]:
    """A mask that fills in −∞ hands back 0 where it did, whatever the weights were.

    From right weights that is what comes anyway: the weight of a hidden key is 0. From a learner's own it is not.
    """
    mask = step.inputs[1]
    arriving, handed_on = backward_of(graph, step.id), backward_of(graph, step.inputs[0])
    if arriving is None or handed_on is None or handed_on.op.name != "identity":
        return

    def filled(xp: Arithmetic, m: Value, *operands: Value, of: Step) -> Value:
        return xp.where(xp.hidden(m), numeral(xp, 0.0), _of(of, xp, *operands))

    said = Message("Right: a hidden score gets gradient 0. It was replaced by −∞, so nothing it does reaches the loss.")
    here = instead(handed_on, filled, mask, arriving.id, of=handed_on)
    yield Route("where-fill", here, said)
    yield Route("where-fill", together(instead(arriving, filled, mask, *arriving.inputs, of=arriving), here), said)


_ROUTES: Mapping[str, Callable[[Graph, Step], Iterator[Route]]] = {
    "row_max": _without_maximum,
    "scale": _queries_scaled,
    "mask": _masked_otherwise,
    "row_mean_square": _from_mean_squares,
}


# --- another constant in the place of the maximum ---------------------------------------------------------------------


def other_constants(
    sources: Iterable[tuple[FloatArray, FloatArray]], written: FloatArray, unit: float, powers: bool
) -> list[FloatArray]:
    """The constants, one a line, that may have been taken away from every visible score in place of the maximum: one for
    all lines first, the rounder before the others.

    Parameters
    ----------
    sources : the least and the largest that each score may have been carried on as, (…, queries, keys) both; −∞ where
        hidden
    written : (…, queries, keys) the shifted scores, or (`powers`) their e^x, rounded or cut off
    unit : a unit of the last place asked

    Returns
    -------
    (…, queries, 1) each, as round as it can be
    """
    found: dict[bytes, tuple[bool, int, FloatArray]] = {}
    for source in sources:
        for least, most in _constants_between(source, written, unit, powers):
            one_for_all = bool(least.max() <= most.min() + _TIE * unit)
            if one_for_all:
                least, most = np.full_like(least, least.max()), np.full_like(most, most.min())
            constant, digits = _roundest(least, most)
            found.setdefault(constant.tobytes(), (not one_for_all, digits, constant[..., None]))
    return [constant for *_, constant in sorted(found.values(), key=lambda one: one[:2])]


def _constants_between(
    source: tuple[FloatArray, FloatArray], written: FloatArray, unit: float, powers: bool
) -> Iterator[tuple[FloatArray, FloatArray]]:
    """Between what constants, line by line, those lie that lead to what was written, by each way of writing it down."""
    visible = ~np.isneginf(source[1])
    hidden = written == 0 if powers else np.isneginf(written)
    if (hidden & visible & ~powers).any() or (~hidden & ~visible).any() or not visible.any(-1).all():
        return
    if not np.isfinite(np.where(visible, written, 0.0)).all() or (powers and (written < 0).any()):
        return
    shown = visible & (written != 0) if powers else visible  # any score that is low enough comes to e^x = 0
    top = source[0].max(-1).ravel() - _USUAL * unit, source[1].max(-1).ravel() + _USUAL * unit
    for lo, hi in _before_writing(written, unit, powers):
        least = np.where(visible, source[0] - hi, -np.inf).max(-1)
        most = np.where(visible, source[1] - lo, np.inf).min(-1)
        if _are_constants(least.ravel(), most.ravel(), top, shown.sum(-1).ravel() > 1, unit):
            yield least, most


def _before_writing(written: FloatArray, unit: float, powers: bool) -> Iterator[tuple[FloatArray, FloatArray]]:
    """Between what numbers the shifted scores lay before they, or their e^x, were written down: rounded, or cut off."""
    rounded = written - unit / 2, written + unit / 2
    cut = np.where(written > 0, written, written - unit), np.where(written < 0, written, written + unit)
    for lo, hi in (rounded, cut):
        if not powers:
            yield lo, hi
            continue
        lo, hi = np.log(np.maximum(lo, 0.0)), np.log(hi)
        yield lo, hi
        yield lo - unit / 2, hi + unit / 2  # of shifted scores that were rounded themselves


def _roundest(least: FloatArray, most: FloatArray) -> tuple[FloatArray, int]:
    """Between these bounds, the numbers with the fewest decimals, and how many these are at most."""
    middle = (least + most) / 2
    found, needed = middle, _MOST_DECIMALS + 1
    for decimals in range(_MOST_DECIMALS, -1, -1):
        rounded = np.round(middle, decimals)
        fits = (rounded >= least) & (rounded <= most)
        found = np.where(fits, rounded, found)
        needed = decimals if fits.all() else needed
    return found, needed


def _are_constants(
    least: FloatArray, most: FloatArray, top: tuple[FloatArray, FloatArray], several: BoolArray, unit: float
) -> bool:
    """Whether constants within these bounds, one a line, are such and not the maximum."""
    wide, common = most - least + _TIE * unit, most.min() - least.max() + _TIE * unit
    sure = max(_SURE, _SURE_UNITS * unit)
    if (wide < 0).any() or ((wide > sure).any() and not 0 <= common <= sure):
        return False
    own = (least > top[1]) | (most < top[0])
    if not own.any():
        return False
    if several.any():
        # A line that shows one score alone agrees with any number: others must show that a constant was taken, or that
        # it was the same one.
        return bool((own & several).any()) or 0 <= common <= sure
    low, high = least - top[1], most - top[0]
    same = ((least[:, None] <= most) & (most[:, None] >= least)) | ((low[:, None] <= high) & (high[:, None] >= low))
    return len(own) > 1 and bool(same.all())

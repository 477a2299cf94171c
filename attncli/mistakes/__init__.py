"""The mistakes people make: what is calculated instead, what it is called, and other ways that are right too.

Each stands in the file of its subject, whole: its id, how often it was seen, its words, where it is made, and what is
calculated instead. A file exports its MISTAKES.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from attncli.core.graph import Graph, Step
from attncli.core.message import N_, Message
from attncli.mistakes import gradients, heads, norms, positions, products, softmax, training
from attncli.mistakes.mistake import Mistake, MistakeKind, Wording, step_of
from attncli.mistakes.norms import source_of

#: Slips of the pen, which are no calculation: `marking/slips.py` looks for them.
_SLIPS = (
    MistakeKind("rounded-too-early", 3, N_("You rounded too early: a line was cut or rounded to fewer places than asked, and the rest follows from that."), N_("Look again at how many places each line keeps before you go on."), rank=2),
    MistakeKind("layout-transposed", 4, N_("This is the right matrix, transposed."), N_("Look again at which way the tokens run."), rank=2),
    MistakeKind("sign", 0, N_("A sign is wrong."), N_("Look again at the signs in the marked cells."), rank=2, vaguer_than=frozenset({"softmax-sign", "bias-sign", "mask-plus-infinity"})),
    MistakeKind("decimal-point", 0, N_("The decimal point slipped."), N_("Look again at the decimal point in the marked cells."), rank=2),
    MistakeKind("cells-exchanged", 0, N_("Two places are swapped."), N_("Look again at where the marked numbers belong."), rank=2),
)  # fmt: skip

#: In the order in which they are named where they were seen equally often.
CATALOGUE: Mapping[str, MistakeKind] = {
    kind.id: kind
    for kind in (
        *products.MISTAKES,
        *softmax.MISTAKES,
        *heads.MISTAKES,
        *norms.MISTAKES,
        *positions.MISTAKES,
        *gradients.MISTAKES,
        *training.MISTAKES,
        *_SLIPS,
    )
}


# --- where they are made ----------------------------------------------------------------------------------------------


def mistakes_at(graph: Graph, step_id: str) -> list[Mistake]:
    """The mistakes that people make at one step, the likelier first.

    Parameters
    ----------
    step_id : the step; at an input, or where there is no such step, no mistake is made
    """
    step = graph.steps.get(step_id)
    return [] if step is None else sorted(_made_at(graph, step), key=lambda mistake: rank(mistake.id))


def _made_at(graph: Graph, step: Step) -> Iterator[Mistake]:
    places = {step_id: place for place, step_id in enumerate(graph.steps)}
    for kind in CATALOGUE.values():
        if not {"", step.op.name}.intersection(kind.at):
            continue
        for swap in kind.made(graph, step):
            # What needs a number that is worked out only afterwards cannot be what somebody did.
            if all(places.get(source, -1) < places[at] for at, one in swap.items() for source in one.inputs):
                yield Mistake(kind.id, swap, kind.alike(graph, step, swap))


def rank(mistake_id: str) -> tuple[int, int, int]:
    """The likelier first: calculations before slips, the simple and the commoner first, else the catalogue's order."""
    kind = CATALOGUE[mistake_id]
    return kind.rank, -kind.seen, list(CATALOGUE).index(mistake_id)


# --- what is said of them ---------------------------------------------------------------------------------------------


def without_vaguer(mistake_ids: Sequence[str]) -> list[str]:
    """Those that are worth a sentence beside the others: what another says more exactly is left out."""
    return [mistake for mistake in mistake_ids if not CATALOGUE[mistake].vaguer_than.intersection(mistake_ids)]


def did(mistake_id: str, graph: Graph | None = None, at: str = "") -> Message:
    """What was done, as a sentence; of a known step in its own words."""
    return Message(_words(mistake_id, graph, at).did)


def look(mistake_id: str, graph: Graph | None = None, at: str = "") -> Message:
    """What to look at again, without giving the answer away."""
    return Message(_words(mistake_id, graph, at).look)


def varies(mistake_id: str) -> bool:
    """Whether the words depend on the step."""
    return bool(CATALOGUE[mistake_id].elsewhere)


def _words(mistake_id: str, graph: Graph | None, at: str) -> MistakeKind | Wording:
    kind = CATALOGUE[mistake_id]
    if not kind.elsewhere or graph is None or at not in graph.steps:
        return kind
    return kind.elsewhere.get(_kind(graph, at), kind)


def _kind(graph: Graph, at: str) -> str:
    """Whether a step multiplies by a number that is given, belongs to an RMS norm, or is the σ of a LayerNorm."""
    step = graph.steps[at]
    if step.op.name == "scale" and step.params.get("factor") is not None:
        return "factor"
    root = step_of(graph, step.inputs[1] if step.op.name == "standardise" else at, "root_eps")
    square = step_of(graph, at if root is None else root.inputs[0], "row_mean_square")
    if square is None or source_of(graph, square.inputs[0])[1]:
        return "std" if root is step else ""
    return "rms"

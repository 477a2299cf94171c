"""attncli why: one number, traced back to the inputs."""

import shlex
from collections.abc import Iterable

from attncli.cli.options import (
    ARITHMETIC,
    GRADIENT,
    INPUTS,
    Command,
    Word,
    as_typed,
    example_ids,
    shared,
    step_ids,
)
from attncli.cli.output import Output, Words
from attncli.core.message import N_

#: Steps that are gone back where nothing is said.
DEPTH = 3


def _steps_and_examples(words: Words) -> Iterable[str]:
    """Either may come next."""
    return [*step_ids(words), *example_ids(words)]


def why(out: Output, words: Words) -> int:
    """Print the arithmetic behind one cell, opened step by step."""
    from attncli.core.outputs import WHY
    from attncli.problems.names import index_of, step_of
    from attncli.problems.request import calculated, parts, problem_of
    from attncli.problems.settings import whole_number
    from attncli.render.run import tree
    from attncli.render.text import names

    depth = words["depth"]
    levels = None if depth == "all" else whole_number("--depth", depth, 1, 1000)
    name, step, places = parts(words["cell"], words)
    problem = problem_of(name, words)
    # The gradients are there to be asked for wherever there is something to start them from.
    result = calculated(name, problem, words)
    graph = result.graph
    step_id = step_of(graph, step, has_gradient=problem.has_gradient)
    index = index_of(graph, step_id, places, problem.layout, lambda axis: names(axis, graph.labels), name)

    def further(another: str) -> str:
        """The command that goes on from another cell."""
        same = as_typed(shared(*INPUTS, *GRADIENT, *ARITHMETIC, "layout", "lang"), words)
        return shlex.join(["attncli", "why", *([] if name is None else [name]), another, *same])

    view, levels = out.view(result), DEPTH if depth is None else levels
    blocks = tree(view, step_id, index, levels, width=out.width, further=None if depth else further)
    out.write(out.text(blocks, view.language), WHY)
    return 0


COMMAND = Command(N_("Trace one number back to the inputs, as nested arithmetic."), why, {
    "cell": Word("[PROBLEM] STEP [ROW COL]", N_("The step and the cell: counted from 1, or by the names of row and column (with heads: STEP HEAD ROW COL); also STEP[ROW,COL]. A problem file or example id may stand first."), _steps_and_examples, many=True),
    "depth": Word("--depth N", N_("How many steps to go back (default: 3), or all.")),
    **shared(*INPUTS, *GRADIENT, *ARITHMETIC, "layout", "lang", "output", "force"),
})  # fmt: skip

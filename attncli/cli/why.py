"""attncli why: one number, traced back to the inputs."""

from typing import Any

import typer

from attncli.cli.options import (
    GRADIENT,
    INPUTS,
    arguments,
    arithmetic_of,
    command_of,
    example_ids,
    option,
    shared,
    step_ids,
)
from attncli.cli.output import Say, console, language_of, write_text

#: Steps that are gone back where nothing is said.
DEPTH = 3


def command(say: Say) -> Any:
    """The command."""
    t = say.text
    table = {
        **shared(say),
        "cell": arguments("[PROBLEM] STEP [ROW COL]", help=t("The step and the cell: counted from 1, or by the names of row and column (with heads: STEP HEAD ROW COL); also STEP[ROW,COL]. A problem file or example id may stand first."), complete=_step_or_example),
        "depth": option("--depth", metavar="N", help=t("How many steps to go back (default: 3), or all.")),
    }  # fmt: skip
    names = ("cell", "depth", *INPUTS, *GRADIENT, "decimals", "carry", "rounding", "exact", "layout", "lang", "output", "force")  # fmt: skip
    return command_of("why", t("Trace one number back to the inputs, as nested arithmetic."), why, say, names, table)


def _step_or_example(ctx: typer.Context, incomplete: str) -> list[str]:
    """Steps and example ids: either may come next."""
    return [*step_ids(ctx, incomplete), *example_ids(incomplete)]


def why(say: Say, *, cell: list[str], depth: str | None, output: str | None, force: bool, **words: Any) -> int:
    """Print the arithmetic behind one cell, opened step by step."""
    from attncli.core.outputs import WHY
    from attncli.problems.names import index_of, step_of
    from attncli.problems.request import calculated, parts, problem_of
    from attncli.problems.settings import whole_number
    from attncli.render.names import names
    from attncli.render.terminal import trimmed
    from attncli.render.view import view
    from attncli.render.why import print_why

    levels = None if depth == "all" else whole_number("--depth", depth, 1, 1000)
    name, step, places = parts(cell, words)
    problem = problem_of(name, words)
    # The gradients are there to be asked for wherever there is something to start them from.
    result = calculated(name, problem, words, **arithmetic_of(words))
    graph = result.graph
    id = step_of(graph, step, has_gradient=problem.has_gradient)
    index = index_of(graph, id, places, problem.layout, lambda axis: names(axis, graph.labels), name)
    to_file = output is not None
    screen, buffer = console(to_file=to_file)
    shown = view(result, language_of(say, to_file=to_file), layout=problem.layout, width=screen.width)
    print_why(shown, id, index, DEPTH if depth is None else levels, screen, going_on=depth is None)
    write_text(say, trimmed(buffer.getvalue()), output, WHY, force=force)
    return 0

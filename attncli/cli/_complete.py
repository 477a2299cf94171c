"""Shell completion: step ids, model names, example ids, formats. Light, and silent where it cannot know."""

from collections.abc import Iterable

import typer


def _starting(words: Iterable[str], incomplete: str) -> list[str]:
    return [word for word in words if word.startswith(incomplete)]


def examples(incomplete: str) -> list[str]:
    """Ids of the worked examples."""
    from attncli.problems import library

    return _starting(library.ids(), incomplete)


def models(incomplete: str) -> list[str]:
    """Names of the models."""
    from attncli import models as all_models

    return _starting(all_models.names(), incomplete)


def formats(incomplete: str) -> list[str]:
    """Names of the output formats."""
    from attncli import render

    return _starting(render.formats(), incomplete)


def presets(incomplete: str) -> list[str]:
    """Names of published models."""
    from attncli.cost import presets as all_presets

    return _starting(all_presets.names(), incomplete)


def variants(incomplete: str) -> list[str]:
    """Variants of attention."""
    from attncli.cost.count import VARIANTS

    return _starting(VARIANTS, incomplete)


def steps(ctx: typer.Context, incomplete: str) -> list[str]:
    """Step ids of the problem that is named on the line, else those that attention and its relatives have."""
    from attncli.cli._calculation import problem_of
    from attncli.core.message import AttnError

    problem = ctx.params.get("problem") or ctx.params.get("exercise")
    try:
        graph = problem_of(problem, {}, None).graph() if problem else None
    except AttnError:
        graph = None
    return _starting(graph.steps if graph is not None else _USUAL, incomplete)


def words_of_why(ctx: typer.Context, incomplete: str) -> list[str]:
    """Steps and example ids: either may come next."""
    return [*steps(ctx, incomplete), *examples(incomplete)]


_USUAL = (
    "X", "Q", "K", "V", "scores", "scaled", "masked", "row_max", "shifted", "exp", "row_sum", "A", "O", "G_V", "G_A",
    "weighted", "row_dot", "deviation", "G_masked", "G_scaled", "G_scores", "G_Q", "G_K", "G_W_Q", "G_W_K", "G_W_V",
    "G_X_Q", "G_X_K", "G_X_V", "G_X", "G_E", "E_new",
)  # fmt: skip

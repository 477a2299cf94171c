"""attncli generate: a trained GPT writes on."""

from typing import TYPE_CHECKING

from attncli.cli.options import REPORT_FORMAT, Command, Word, shared
from attncli.cli.output import REPORTS, Output, Words
from attncli.core.message import N_, InputError, Message

if TYPE_CHECKING:
    from attncli.training.generate import WrittenToken
    from attncli.training.spec import TrainingState


def generate(out: Output, words: Words) -> int:
    """Write on from a prompt; the exit status is 1 where --verify finds a difference."""
    from attncli.problems.settings import whole_number
    from attncli.training import generate as writing
    from attncli.training.saved import load

    trace = words["trace"]
    if not trace and (words["decimals"] is not None or words["full"]):
        raise InputError("--decimals and --full belong to --trace. Leave them out, or write --trace too.")
    chosen = out.format(REPORTS)
    if trace and chosen != "table":
        raise InputError("--trace shows tables only. Leave --format out, or leave --trace out.")
    if trace and words["output"] is not None:
        raise InputError("--trace goes to the screen. Leave -o out, or send the screen to a file with >.")
    decimals = whole_number("--decimals", words["decimals"], 0, 15)
    asked = writing.length_of(words["length"], trace=trace, verify=words["verify"])
    choice = writing.choice_of(words["temperature"], words["top"], words["seed"])
    state = load(words["file"])
    ids = writing.prompt_ids(state, words["prompt"])
    length = writing.usual_length(state, ids, trace=trace) if asked is None else asked
    tokens = list(writing.written(state, ids, length, choice, keep=trace))
    worst = writing.difference(state, ids, tokens) if words["verify"] else None
    if trace:
        _trace(out, state, ids, tokens, decimals)
    out.write_report(writing.report(tokens, ids, state.spec, choice, worst), chosen)
    return 1 if worst is not None and worst > writing.TOLERANCE else 0


def _trace(
    out: Output, state: "TrainingState", prompt: list[int], tokens: "list[WrittenToken]", decimals: int | None
) -> None:
    """The tables of every token's calculation, one after another."""
    from attncli.locale import in_every_language

    for count, token in enumerate(tokens, start=1):
        assert token.run is not None  # they were kept
        new = prompt if count == 1 else [tokens[count - 2].id]
        title = Message(
            "Token {number}: “{new}” comes in, {cached} tokens are in the cache; “{token}” is chosen",
            number=count,
            new="".join(state.spec.tokens[token_id] for token_id in new),
            cached=token.cached,
            token=token.text,
        )
        problem = token.run.problem.changed(title=in_every_language(title))
        out.show(token.run.changed(problem=problem, decimals=decimals))
        out.say.out("\n")


COMMAND = Command(N_("Let a saved training continue a text, token by token, with keys and values kept in a cache."), generate, {
    "file": Word("FILE", N_("A training that attncli train --save has written.")),
    "prompt": Word("PROMPT", N_("The beginning, in tokens that the training knows.")),
    "length": Word("--length N", N_("Tokens to write (default: 20, or 3 with --trace; fewer if the training looked at fewer together).")),
    "temperature": Word("--temperature T", N_("0, the default, takes the likeliest token; 1 draws by the probabilities; more is bolder.")),
    "top": Word("--top N", N_("Draw among the N likeliest only.")),
    "seed": Word("--seed N", N_("Seed of the draw (default: 0).")),
    "trace": Word("--trace", N_("Show the whole calculation of every token, with the cache.")),
    "verify": Word("--verify", N_("Work everything out again without a cache, and compare.")),
    **REPORT_FORMAT,
    **shared("output", "force", "decimals", "full", "lang"),
})  # fmt: skip

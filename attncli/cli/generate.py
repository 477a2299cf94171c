"""attncli generate: a trained GPT writes on."""

from typing import TYPE_CHECKING, Any

from attncli.cli.options import argument, command_of, flag, option, shared_by_reports
from attncli.cli.output import Say, report_format, show, write_report
from attncli.core.message import InputError

if TYPE_CHECKING:
    from attncli.training.generate import WrittenToken
    from attncli.training.trainer import TrainingState


def command(say: Say) -> Any:
    """The command."""
    t = say.text
    own = {
        "file": argument("FILE", help=t("A training that attncli train --save has written.")),
        "prompt": argument("PROMPT", help=t("The beginning, in tokens that the training knows.")),
        "length": option("--length", metavar="N", help=t("Tokens to write (default: 20, or 3 with --trace; fewer if the training looked at fewer together).")),
        "temperature": option("--temperature", metavar="T", help=t("0, the default, takes the likeliest token; 1 draws by the probabilities; more is bolder.")),
        "top": option("--top", metavar="N", help=t("Draw among the N likeliest only.")),
        "seed": option("--seed", metavar="N", help=t("Seed of the draw (default: 0).")),
        "trace": flag("--trace", help=t("Show the whole calculation of every token, with the cache.")),
        "verify": flag("--verify", help=t("Work everything out again without a cache, and compare.")),
    }  # fmt: skip
    help = t("Let a saved training write on, token by token, with keys and values kept in a cache.")
    names = (*own, "format", "output", "force", "decimals", "full", "lang")
    return command_of("generate", help, generate, say, names, {**shared_by_reports(say), **own})


def generate(say: Say, *, file: str, prompt: str, **words: Any) -> int:
    """Write on from a prompt; the exit status is 1 where --verify finds a difference."""
    from attncli.problems.settings import whole_number
    from attncli.training import generate as writing
    from attncli.training.saved import load

    trace = words["trace"]
    if not trace and (words["decimals"] is not None or words["full"]):
        raise InputError("--decimals and --full belong to --trace. Leave them out, or write --trace too.")
    chosen = report_format(words["format"], words["output"])
    if trace and chosen != "table":
        raise InputError("--trace shows tables only. Leave --format out, or leave --trace out.")
    if trace and words["output"] is not None:
        raise InputError("--trace goes to the screen. Leave -o out, or send the screen to a file with >.")
    decimals = whole_number("--decimals", words["decimals"], 0, 15)
    asked = writing.length_of(words["length"], trace=trace, verify=words["verify"])
    choice = writing.choice_of(words["temperature"], words["top"], words["seed"])
    state = load(file)
    ids = writing.prompt_ids(state, prompt)
    length = writing.usual_length(state, ids, trace=trace) if asked is None else asked
    tokens = list(writing.written(state, ids, length, choice, keep=trace))
    worst = writing.difference(state, ids, tokens) if words["verify"] else None
    if trace:
        _trace(say, state, ids, tokens, decimals, words)
    report = writing.report(tokens, ids, state.spec, choice, worst)
    write_report(say, report, chosen, words["output"], force=words["force"])
    return 1 if worst is not None and worst > writing.TOLERANCE else 0


def _trace(
    say: Say, state: "TrainingState", prompt: list[int], tokens: "list[WrittenToken]", decimals: int | None, words: Any
) -> None:
    """The tables of every token's calculation, one after another."""
    from attncli.core.message import N_, Message
    from attncli.locale import CODES, language

    for count, token in enumerate(tokens, start=1):
        assert token.run is not None  # they were kept
        new = prompt if count == 1 else [tokens[count - 2].id]
        title = {
            code: Message(
                N_("Token {number}: “{new}” comes in, {cached} tokens are in the cache; “{token}” is chosen"),
                number=count,
                new="".join(state.spec.tokens[id] for id in new),
                cached=token.cached,
                token=token.text,
            ).text(language(code))
            for code in CODES
        }
        problem = token.run.problem.changed(title=title)
        show(say, token.run.changed(problem=problem, decimals=decimals), {**words, "format": "table"})
        say.out("\n")

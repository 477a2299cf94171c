"""attncli train: a GPT learns a text, from scratch, and shows how."""

from typing import Annotated, Any

import typer

from attncli.cli._light import command_of
from attncli.cli._options import SHOWN, options, with_options
from attncli.cli._say import Say

#: Options that say what is trained, which a saved training knows already.
SIZES = (
    *("split", "context", "d_model", "d_k", "d_v", "heads", "kv_heads", "layers", "d_ff", "positions", "rotary"),
    *("norm", "normalisation", "activation", "tied", "seed"),
)
LEARNING = ("steps", "eta", "optimizer")


def command(say: Say) -> Any:
    """The command."""

    def train(**words: Any) -> int:
        from attncli.cli._train import train

        return train(say, **words)

    names = (
        "text",
        *LEARNING,
        *SIZES,
        "at",
        "load",
        "save",
        *(name for name in SHOWN if name not in ("step", "exact")),
    )
    app = typer.Typer(rich_markup_mode=None, add_completion=False)
    app.command(
        "train",
        help=say.text(
            "Train a small GPT on a text and show what it learnt: the loss, the next token, who looks at whom, a continuation."
        ),
    )(with_options(train, names, {**options(say), **_own(say)}))
    return command_of(app)


def _own(say: Say) -> dict[str, tuple[Any, Any]]:
    t = say.text
    one = str | None
    return {
        "text": (Annotated[one, typer.Argument(metavar="[TEXT]", help=t("The text, @FILE, or - for standard input; a saved training brings its own."), show_default=False)], None),
        "steps": (Annotated[one, typer.Option("--steps", metavar="N", help=t("How many updates to make (500 if nothing is said)."))], None),
        "eta": (Annotated[one, typer.Option("--eta", metavar="NUMBER", help=t("The learning rate η (0.05 for adam, 0.2 for sgd)."))], None),
        "optimizer": (Annotated[one, typer.Option("--optimizer", metavar="adam|sgd", help=t("How the numbers are updated (adam if nothing is said)."))], None),
        "split": (Annotated[one, typer.Option("--split", metavar="characters|words", help=t("How the text is cut into tokens (characters if nothing is said)."))], None),
        "context": (Annotated[one, typer.Option("--context", metavar="N", help=t("Tokens that are looked at together (32, or as long as the text is)."))], None),
        "d_model": (Annotated[one, typer.Option("--d-model", metavar="N", help=t("Numbers in a token's vector (4)."))], None),
        "d_k": (Annotated[one, typer.Option("--d-k", metavar="N", help=t("Width of a head's queries and keys (2)."))], None),
        "d_v": (Annotated[one, typer.Option("--d-v", metavar="N", help=t("Width of a head's values (2)."))], None),
        "heads": (Annotated[one, typer.Option("--heads", metavar="N", help=t("Heads (1)."))], None),
        "kv_heads": (Annotated[one, typer.Option("--kv-heads", metavar="N", help=t("Heads of keys and values (as many as heads)."))], None),
        "layers": (Annotated[one, typer.Option("--layers", metavar="N", help=t("Blocks; 0, the default: causal attention and nothing else."))], None),
        "d_ff": (Annotated[one, typer.Option("--d-ff", metavar="N", help=t("Width of the feed-forward sublayer of a block (0: there is none)."))], None),
        "positions": (Annotated[one, typer.Option("--positions", metavar="none|sinusoidal|learned", help=t("What is added to the embeddings (sinusoidal; with --rotary none)."))], None),
        "rotary": (Annotated[bool, typer.Option("--rotary", help=t("Turn queries and keys by their positions."))], False),
        "norm": (Annotated[one, typer.Option("--norm", metavar="pre|post", help=t("Where the norms of a block stand (pre)."))], None),
        "normalisation": (Annotated[one, typer.Option("--normalisation", metavar="layer|rms|none", help=t("Which norm (layer)."))], None),
        "activation": (Annotated[one, typer.Option("--activation", metavar="NAME", help=t("The bend of the feed-forward sublayer: relu, gelu, gelu_tanh, silu or swiglu (gelu)."))], None),
        "tied": (Annotated[bool, typer.Option("--tied", help=t("The logits use the embedding table again."))], False),
        "seed": (Annotated[one, typer.Option("--seed", metavar="N", help=t("Of the first random numbers (0)."))], None),
        "at": (Annotated[one, typer.Option("--step", metavar="K", help=t("Show step K in full, every number of it, instead of the whole training."))], None),
        "load": (Annotated[one, typer.Option("--load", metavar="FILE", help=t("Go on with a saved training."))], None),
        "save": (Annotated[one, typer.Option("--save", metavar="FILE", help=t("Save the training (.npz) when it is done."))], None),
    }  # fmt: skip

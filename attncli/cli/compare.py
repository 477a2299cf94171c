"""attncli compare: what MHA, MQA, GQA and MLA cost."""

from typing import Annotated, Any

import typer

from attncli.cli import _complete
from attncli.cli._light import command_of
from attncli.cli._options import report_options, with_options
from attncli.cli._say import Say

SIZES = ("d_model", "heads", "kv_heads", "d_head", "d_c", "d_c_q", "d_rope", "layers", "context", "window", "bytes")


def command(say: Say) -> Any:
    """The command."""

    def compare(**words: Any) -> int:
        from attncli.cli._compare import compare as run

        return run(say, **words)

    t = say.text
    one = str | None
    many = list[str] | None
    own: dict[str, tuple[Any, Any]] = {
        "variants": (Annotated[many, typer.Argument(metavar="[mha|mqa|gqa|mla]...", help=t("What to compare: all four, or with several presets what each of them uses."), autocompletion=_complete.variants, show_default=False)], None),
        "preset": (Annotated[many, typer.Option("--preset", metavar="NAME", help=t("The sizes of a published model: gpt2, llama-2-7b (if nothing is said), llama-2-70b, llama-3-8b, mistral-7b or deepseek-v2; several stand side by side."), autocompletion=_complete.presets, show_default=False)], None),
        "config": (Annotated[many, typer.Option("--config", metavar="FILE", help=t("The sizes in a model's config.json, as Hugging Face keeps it; several stand side by side."), show_default=False)], None),
        "d_model": (Annotated[one, typer.Option("--d-model", metavar="N", help=t("Width of a token."))], None),
        "heads": (Annotated[one, typer.Option("--heads", metavar="N", help=t("Query heads, n_h."))], None),
        "kv_heads": (Annotated[one, typer.Option("--kv-heads", metavar="N", help=t("Heads of keys and values in GQA, n_g."))], None),
        "d_head": (Annotated[one, typer.Option("--d-head", metavar="N", help=t("Width of a head, d_h (d_model/n_h, if nothing is said)."))], None),
        "d_c": (Annotated[one, typer.Option("--d-c", metavar="N", help=t("MLA: width of the latent of keys and values, d_c."))], None),
        "d_c_q": (Annotated[one, typer.Option("--d-c-q", metavar="N", help=t("MLA: width of the latent of queries, d_c'; 0 for none."))], None),
        "d_rope": (Annotated[one, typer.Option("--d-rope", metavar="N", help=t("MLA: width of the rotary part, d_h^R; 0 for none."))], None),
        "layers": (Annotated[one, typer.Option("--layers", metavar="N", help=t("Layers, l."))], None),
        "context": (Annotated[one, typer.Option("--context", metavar="N", help=t("Tokens in the context, n."))], None),
        "window": (Annotated[one, typer.Option("--window", metavar="N", help=t("A token sees only the last N tokens, itself included; 0: no limit."))], None),
        "bytes": (Annotated[one, typer.Option("--bytes", metavar="N|fp16", help=t("Bytes of a number in the cache: a number, or fp32, fp16, bf16, fp8, int8, int4."))], None),
        "bias": (Annotated[bool, typer.Option("--bias", help=t("Count biases of the projections (not for MLA)."))], False),
        "prefill": (Annotated[one, typer.Option("--prefill", metavar="causal|full", help=t("Which pairs of tokens are counted: those a token may see (causal, the default), or all."))], None),
        "expand": (Annotated[bool, typer.Option("--expand", help=t("Show every product that is counted, with its sizes."))], False),
    }  # fmt: skip
    app = typer.Typer(rich_markup_mode=None, add_completion=False)
    help = t("Compare MHA, MQA, GQA and MLA: parameters, KV cache, multiply-adds, and what is said about them.")
    names = ("variants", "preset", "config", *SIZES, "bias", "prefill", "expand", "format", "output", "force", "lang")
    app.command("compare", help=help)(with_options(compare, names, {**report_options(say), **own}))
    return command_of(app)

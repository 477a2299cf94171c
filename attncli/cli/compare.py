"""attncli compare: what MHA, MQA, GQA and MLA cost."""

from typing import TYPE_CHECKING, Any

from attncli.cli.options import arguments, command_of, flag, option, options, shared_by_reports, starting
from attncli.cli.output import Say, language_of, printed, report_format, write_text

if TYPE_CHECKING:
    from attncli.cost.comparison import Comparison


def command(say: Say) -> Any:
    """The command."""
    t = say.text
    own = {
        "variants": arguments("[mha|mqa|gqa|mla]...", help=t("What to compare: all four, or with several presets what each of them uses."), complete=_variants, default=None),
        "preset": options("--preset", metavar="NAME", help=t("The sizes of a published model: gpt2, llama-2-7b (the default), llama-2-70b, llama-3-8b, mistral-7b or deepseek-v2; several are shown side by side."), complete=_presets),
        "config": options("--config", metavar="FILE", help=t("The sizes in a model's config.json, as Hugging Face keeps it; several are shown side by side.")),
        "d_model": option("--d-model", metavar="N", help=t("Width of a token.")),
        "heads": option("--heads", metavar="N", help=t("Query heads, n_h.")),
        "kv_heads": option("--kv-heads", metavar="N", help=t("Heads of keys and values in GQA, n_g.")),
        "d_head": option("--d-head", metavar="N", help=t("Width of a head, d_h (default: d_model/n_h).")),
        "d_c": option("--d-c", metavar="N", help=t("MLA: width of the latent of keys and values, d_c.")),
        "d_c_q": option("--d-c-q", metavar="N", help=t("MLA: width of the latent of queries, d_c'; 0 for none.")),
        "d_rope": option("--d-rope", metavar="N", help=t("MLA: width of the rotary part, d_h^R; 0 for none.")),
        "layers": option("--layers", metavar="N", help=t("Layers, l.")),
        "context": option("--context", metavar="N", help=t("Tokens in the context, n.")),
        "window": option("--window", metavar="N", help=t("A token sees only the last N tokens, itself included; 0: no limit.")),
        "bytes": option("--bytes", metavar="N|fp16", help=t("Bytes of a number in the cache: a number, or fp32, fp16, bf16, fp8, int8, int4.")),
        "bias": flag("--bias", help=t("Count biases of the projections (not for MLA).")),
        "prefill": option("--prefill", metavar="causal|full", help=t("Which pairs of tokens are counted: those a token may see (causal, the default), or all.")),
        "expand": flag("--expand", help=t("Show every product that is counted, with its sizes.")),
    }  # fmt: skip
    help = t("Compare MHA, MQA, GQA and MLA: parameters, KV cache, multiply-adds, and what is said about them.")
    names = (*own, "format", "output", "force", "lang")
    return command_of("compare", help, compare, say, names, {**shared_by_reports(say), **own})


def _variants(incomplete: str) -> list[str]:
    """Variants of attention, for the shell."""
    from attncli.cost.count import VARIANTS

    return starting(VARIANTS, incomplete)


def _presets(incomplete: str) -> list[str]:
    """Names of published models, for the shell."""
    from attncli.cost import presets

    return starting(presets.names(), incomplete)


def compare(say: Say, **words: Any) -> int:
    """Count, and show it."""
    from attncli.core.outputs import REPORT
    from attncli.cost.comparison import comparison, models_of, sizes_of, variants_of

    target = words["output"]
    chosen = report_format(words["format"], target)
    named = variants_of(words["variants"] or ())
    found = comparison(models_of(words["preset"] or (), words["config"] or (), sizes_of(words)), named)
    text = _written(say, found, chosen, expand=words["expand"], to_file=target is not None)
    write_text(say, text, target, REPORT, force=words["force"])
    return 0


def _written(say: Say, found: "Comparison", format: str, *, expand: bool, to_file: bool) -> str:
    from attncli.render import data
    from attncli.render.comparison import page
    from attncli.render.document import say_in

    language = language_of(say, to_file=to_file)
    if format == "json":
        return data.comparison_json(found, language)
    if format == "csv":
        return data.comparison_csv(found)
    blocks, said = page(found, language, expand=expand), say_in(language)
    if format == "markdown":
        from attncli.render.markdown import as_markdown

        return as_markdown(blocks, said)
    from attncli.render.terminal import Screen

    return printed(
        lambda screen: Screen(said, width=screen.width, encoding=screen.encoding).printed(blocks), to_file=to_file
    )

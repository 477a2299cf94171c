"""attncli compare: what MHA, MQA, GQA and MLA cost."""

from collections.abc import Iterable

from attncli.cli.options import REPORT_FORMAT, Command, Word, shared
from attncli.cli.output import REPORTS, Output, Words
from attncli.core.message import N_


def _variants(words: Words) -> Iterable[str]:
    """Variants of attention, for the shell."""
    from attncli.cost.count import VARIANTS

    return VARIANTS


def _presets(words: Words) -> Iterable[str]:
    """Names of published models, for the shell."""
    from attncli.cost import published

    return published.names()


def compare(out: Output, words: Words) -> int:
    """Count, and show it."""
    from attncli.core.outputs import REPORT
    from attncli.cost.comparison import comparison, models_of, sizes_of, variants_of
    from attncli.render import data
    from attncli.render.comparison import page

    chosen = out.format(REPORTS)
    named = variants_of(words["variants"])
    found = comparison(models_of(words["preset"], words["config"], sizes_of(words)), named)
    if chosen == "json":
        text = data.comparison_json(found, out.language)
    elif chosen == "csv":
        text = data.comparison_csv(found)
    else:
        text = out.page(page(found, expand=words["expand"]), chosen)
    out.write(text, REPORT)
    return 0


COMMAND = Command(N_("Compare MHA, MQA, GQA and MLA: parameters, KV cache, multiply-adds, and what is said about them."), compare, {
    "variants": Word("[mha|mqa|gqa|mla]...", N_("What to compare. Left out: all four; with several presets, the variant that each of them uses."), _variants),
    "preset": Word("--preset NAME", N_("The sizes of a published model: gpt2, llama-2-7b (the default), llama-2-70b, llama-3-8b, mistral-7b or deepseek-v2; several are shown side by side."), _presets, many=True),
    "config": Word("--config FILE", N_("The sizes in a model's config.json, as Hugging Face keeps it; several are shown side by side."), many=True),
    "d_model": Word("--d-model N", N_("Width of a token's vector, d_model.")),
    "heads": Word("--heads N", N_("Query heads, n_h.")),
    "kv_heads": Word("--kv-heads N", N_("Heads of keys and values in GQA, n_g.")),
    "d_head": Word("--d-head N", N_("Width of a head, d_h (default: d_model/n_h).")),
    "d_c": Word("--d-c N", N_("MLA: width of the latent of keys and values, d_c.")),
    "d_c_q": Word("--d-c-q N", N_("MLA: width of the latent of queries, d_c'; 0 for none.")),
    "d_rope": Word("--d-rope N", N_("MLA: width of the rotary part, d_h^R; 0 for none.")),
    "layers": Word("--layers N", N_("Layers, l.")),
    "context": Word("--context N", N_("Tokens in the context, n.")),
    "window": Word("--window N", N_("A token sees only the last N tokens, itself included; 0: no limit.")),
    "bytes": Word("--bytes N|fp16", N_("Bytes of a number in the cache: a number, or fp32, fp16, bf16, fp8, int8, int4.")),
    "bias": Word("--bias", N_("Count biases of the projections (not for MLA).")),
    "prefill": Word("--prefill causal|full", N_("Which pairs of tokens are counted: those a token may see (causal, the default), or all.")),
    "expand": Word("--expand", N_("Show every product that is counted, with its sizes.")),
    **REPORT_FORMAT,
    **shared("output", "force", "lang"),
})  # fmt: skip

"""The comparison as JSON and CSV: every number exact."""

from __future__ import annotations

import csv
import io
import json
from fractions import Fraction
from typing import Any

from attncli.core.message import Language, Message
from attncli.cost.claims import Claim
from attncli.cost.comparison import Comparison, Entry, Model
from attncli.cost.count import Line
from attncli.render._compare_words import counted, numbers, rounded, symbols

_PARTS = (
    ("weights", "parameters"),
    ("prefill", "prefill_multiply_adds"),
    ("decode", "decode_multiply_adds"),
    ("absorbed", "decode_absorbed_multiply_adds"),
)


def as_json(comparison: Comparison, language: Language) -> str:
    """One object on one line."""
    same = comparison.same
    data = {
        "schema": 1,
        "models": [_model(model) for model in comparison.models],
        "entries": [{**_entry(entry), "products": _products(entry)} for entry in comparison.entries],
        "mla_as_gqa": [
            {"model": one.model, "head_widths": _plain(one.widths.value), "groups": _plain(one.groups.value)}
            for one in comparison.latent
        ],
        "claims": [_claim(claim, language) for claim in comparison.claims],
        "same_weights": {
            "seed": same.seed,
            "rows": [
                {"variant": row.variant, "kv_heads": row.kv_heads, "largest_difference": row.difference}
                for row in same.rows
            ],
            "mla_plain_and_absorbed": same.absorbed,
            "mqa_and_mha_apart": same.apart,
        },
        "counted": [message.text(language) for message in counted(comparison)],
    }
    return json.dumps(data, ensure_ascii=False, allow_nan=False) + "\n"


def as_csv(comparison: Comparison) -> str:
    """A row for every model and variant."""
    rows = [_entry(entry) for entry in comparison.entries]
    out = io.StringIO()
    writer = csv.DictWriter(out, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return out.getvalue()


def _model(model: Model) -> dict[str, Any]:
    sizes = {name: _plain(getattr(model.sizes, name)) for name in model.sizes._fields}
    return {
        "name": model.name,
        "title": model.title,
        "source": model.source,
        "config": dict(model.config),
        "variant": model.variant,
        "sizes": sizes,
        "given": list(model.given),
        "assumed": [one.name for one in model.assumed],
    }


def _entry(entry: Entry) -> dict[str, Any]:
    count = entry.count
    found: dict[str, Any] = {
        "model": entry.model.name,
        "variant": count.variant,
        "cache_formula": symbols(count.cache),
        "cache_elements_per_token": count.cache.value,
        "cache_bytes_per_token": _plain(count.cache_bytes),
        "cache_share_of_mha": _plain(entry.cache_share),
        "cached_tokens": count.sizes.cached,
        "cache_bytes": _plain(count.full_cache_bytes),
    }
    for part, name in _PARTS:
        share = entry.share(part)
        found[name] = None if share is None else count.total(part)
        found[f"{name}_share_of_mha"] = _plain(share)
    return found


def _products(entry: Entry) -> dict[str, Any]:
    return {name: [_line(line) for line in getattr(entry.count, part)] for part, name in _PARTS}


def _line(line: Line) -> dict[str, Any]:
    return {
        "name": line.name,
        "formula": symbols(line.count),
        "numbers": numbers(line.count),
        "per_layer": line.count.value,
    }


def _claim(claim: Claim, language: Language) -> dict[str, Any]:
    def text(message: Message | None) -> str | None:
        return None if message is None else rounded(message).text(language)

    return {
        "id": claim.id,
        "claim": text(claim.text),
        "findings": [
            {
                "model": finding.model,
                "reading": text(finding.reading),
                "formula": [symbols(finding.ratio.above), symbols(finding.ratio.below)],
                "numbers": [finding.ratio.above.value, finding.ratio.below.value],
                "ratio": _plain(finding.ratio.value),
                "holds": finding.holds,
                "where": text(finding.where),
            }
            for finding in claim.findings
        ],
        "verdict": text(claim.verdict),
    }


def _plain(value: Any) -> Any:
    """A fraction as a whole number where it is one, else as a float; anything else as it is."""
    if isinstance(value, Fraction):
        return int(value) if value.denominator == 1 else float(value)
    return value

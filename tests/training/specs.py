"""Random trainings, small enough that one takes milliseconds."""

from __future__ import annotations

from hypothesis import strategies as st

from attncli.training.spec import Spec

TEXTS = ("abcab", "aabbc", "我爱你你爱我", "abcdefab")


@st.composite
def specs(draw: st.DrawFn) -> tuple[Spec, str]:
    """A spec whose parts go together, and its text."""
    text = draw(st.sampled_from(TEXTS))
    layers = draw(st.integers(0, 2))
    kv_heads = draw(st.integers(1, 2))
    heads = kv_heads * draw(st.integers(1, 2))
    tied = draw(st.booleans())
    rotary = draw(st.booleans()) and (layers > 0 or heads > 1 or tied)
    spec = Spec(
        tokens=tuple(dict.fromkeys(text)),
        split="characters",
        context=draw(st.integers(2, len(text) - 1)),
        d_model=draw(st.sampled_from([2, 4])),
        d_k=2 if rotary else draw(st.integers(1, 3)),
        d_v=draw(st.integers(1, 3)),
        heads=heads,
        kv_heads=kv_heads,
        layers=layers,
        d_ff=draw(st.sampled_from([0, 3])) if layers else 0,
        positions=draw(st.sampled_from(["none", "sinusoidal", "learned"])),
        rotary=rotary,
        norm=draw(st.sampled_from(["pre", "post"])),
        normalisation=draw(st.sampled_from(["layer", "rms", "none"])),
        activation=draw(st.sampled_from(["gelu", "relu", "silu", "swiglu"])),
        tied=tied,
        optimizer=draw(st.sampled_from(["adam", "sgd"])),
        eta=0.02,
        seed=draw(st.integers(0, 99)),
    )
    return spec.checked(), text

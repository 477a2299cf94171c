"""Commands that the tests type."""

from __future__ import annotations

from saved import SAVED

A1 = ("-Q", "1 2", "-K", "1 0; 0 1", "-V", "2 0; 0 4")
IDENTITY = "1 0; 0 1"
SELF = tuple(
    word
    for name, matrix in {"X": "1 0; 0 1; 1 1", "W_Q": IDENTITY, "W_K": IDENTITY, "W_V": IDENTITY}.items()
    for word in ("--set", f"{name}={matrix}")
)

#: Commands with a snapshot at every width.
EVERYWHERE = {
    "greeting": (),
    "forward": ("forward", *A1),
    "forward-causal-expand": ("forward", *SELF, "--causal", "--expand"),
    "backward": ("backward", *A1, "--upstream", "1 2"),
    "backward-exact": ("backward", *A1, "--upstream", "1 2", "--exact", "--step", "A", "--step", "G_K"),
    "why": ("why", "A", "1", "2", *A1),
    "examples-list": ("examples", "list"),
    "examples-show": ("examples", "show", "b6-full-backward", "--hint"),
    "examples-run": ("examples", "run", "a1-pronoun"),
    "models": ("models",),
    "models-one": ("models", "self_attention"),
    "compare": ("compare",),
    "compare-models": ("compare", "--preset", "gpt2,mistral-7b,deepseek-v2"),
    "compare-expand": ("compare", "gqa", "mla", "--d-model", "64", "--heads", "8", "--expand"),
    "train": ("train", "我喜欢数学"),
    "train-words": ("train", "to be or not to be", "--split", "words", "--steps", "40", "--heads", "2"),
    "train-block": ("train", "abcab", "--layers", "1", "--d-ff", "6", "--rotary", "--optimizer", "sgd", "--steps", "9"),
    "train-no-step": ("train", "我喜欢数学", "--steps", "0"),
    "generate": ("generate", SAVED, "我", "--length", "6"),
    "lab-scaling": ("lab", "scaling"),
    "lab-softmax": ("lab", "softmax"),
    "lab-softmax-logits": ("lab", "softmax", "--logits", "2 2 0"),
    "lab-overflow": ("lab", "overflow"),
    "lab-overflow-none": ("lab", "overflow", "--logits", "2 1", "--hidden", "5"),
    "lab-heads": ("lab", "heads"),
    "lab-heads-example": ("lab", "heads", "d1-two-heads"),
    "lab-heads-saved": ("lab", "heads", SAVED),
    "lab-rank": ("lab", "rank"),
    "lab-rank-matrix": ("lab", "rank", "--matrix", "1 2; 3 4; 5 6"),
    "wrong-config": ("compare", "config.json"),
    "wrong-sizes": ("train", "ab", "--heads", "3", "--kv-heads", "2"),
    "wrong-shape": ("forward", "-Q", "1 2 3", "-K", "1 0; 0 1", "-V", "2 0; 0 4"),
}
WIDTHS = (40, 60, 80, 200)
#: Narrow enough to break lines, and the usual one.
WIDTHS_IN_CHINESE = (40, 80)

"""Bad input of every kind: exit status 2, nothing on standard output, one message that says what, where, expected, instead."""

from __future__ import annotations

import io
import os
import pickle
import subprocess
import sys
import zipfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from harness import on_terminal, one_message, refused, run
from rich.cells import cell_len

import attncli
from attncli.core.message import AttnError

Q, K, V = ["-Q", "1 2"], ["-K", "1 0; 0 1"], ["-V", "2 0; 0 4"]
QKV = [*Q, *K, *V]
FORWARD = ["forward", *QKV]
BACKWARD = ["backward", *QKV]
SELF = ["forward", "--set", "X=1 2; 3 4", "--set", "W_Q=1 0; 0 1", "--set", "W_K=1 0; 0 1"]
SCORES = ["forward", "--model", "softmax", "--set"]
ROTARY = ["forward", "--model", "rotary", "--set"]
GPT = [
    word
    for text in ("E=1 2; 3 4", "T=0 1", "W_Q=1 0; 0 1", "W_K=1 0; 0 1", "W_V=1 0; 0 1", "W_out=1 0; 0 1")
    for word in ("--set", text)
]
TABLE = ["forward", "--set", "E=1 2; 3 4; 5 6"]
TOML = 'model = "attention"\n[inputs]\nQ = "1 2"\nK = "1 0; 0 1"\nV = "2 0; 0 4"\n'
NUMBERS = "Write numbers like -0.5, 1/3, √2, e^-1 or -inf."


def q(text: str) -> list[str]:
    """A command with this text as Q."""
    return ["forward", "-Q", text, *K, *V]


#: Matrix texts, and the words of the message.
TEXTS: dict[str, tuple[str, tuple[str, ...]]] = {
    "ragged rows": ("1 2; 3", ("-Q: Row 2 has 1 entry, but row 1 has 2. Every row needs the same number of entries.",)),
    "ragged blocks": ("1 2; 3 4 | 5 6", ("Block 2 has 1 row, but block 1 has 2.",)),
    "a stray letter": ("1 2; 3 x", ("-Q: row 2, column 2: “x” is not a number", NUMBERS)),
    "a stray letter in brackets": ("[[1,2],[3,x]]", ("-Q: row 2, column 2: “x” is not a number",)),
    "a stray letter in a block": ("1 2 | 3 x", ("-Q: block 2, row 1, column 2: “x” is not a number",)),
    "a stray letter in nested blocks": ("[[[1,2],[3,4]],[[5,6],[7,y]]]", ("block 2, row 2, column 2: “y”",)),
    "a word": ("hello", ("row 1, column 1: “hello” is not a number",)),
    "an imaginary unit": ("1j 2", ("“1j” is not a number",)),
    "a hexadecimal number": ("0x10 2", ("“0x10” is not a number",)),
    "an underscore in a number": ("1_000 2", ("“1_000” is not a number",)),
    "digits of other scripts": ("٣ 2", ("“٣” is not a number",)),
    "two points": ("1.2.3 4", ("“1.2.3” is not a number: “.3” does not belong there",)),
    "an exponent that stops": ("1e 2", ("“1e” may be a number without its exponent, or 1 times e. Write 1e3 or 1*e.",)),
    "a fraction of an exponent": ("1e3.5 2", ("“1e3.5” is not a number",)),
    "nothing": ("", ("-Q: The matrix is empty. Write rows separated by “;”, like “1 2; 3 4”.",)),
    "spaces only": ("   ", ("The matrix is empty",)),
    "empty brackets": ("[]", ("The matrix is empty",)),
    "doubly empty brackets": ("[[]]", ("The matrix is empty",)),
    "an empty row in brackets": ("[[1,2],[]]", ("Row 2 is empty",)),
    "an empty block": ("1 2 |", ("Block 2 is empty",)),
    "a missing entry": ("1,,2", ("-Q: row 1, column 2: there is a comma but no number. Write the number",)),
    "a missing entry in brackets": ("[[1,2],[3,,4]]", ("row 2, column 2: there is a comma but no number",)),
    "a missing entry in a block": ("1 2 | 3,,4", ("block 2, row 1, column 2: there is a comma but no number",)),
    "a missing entry in a block in brackets": ("[1 2 | 3,,4]", ("block 2, row 1, column 2: there is a comma",)),
    "a missing entry in nested blocks": ("[[[1,2]],[[3,,4]]]", ("block 2, row 1, column 2: there is a comma",)),
    "a missing first entry": (",1 2", ("row 1, column 1: there is a comma but no number",)),
    "a missing last entry": ("1,2,\n3,4", ("row 1, column 3: there is a comma but no number",)),
    "a missing row": ("1 2;;3 4", ("row 2, column 1: there is a “;” but no row before it",)),
    "a missing first row": (";1 2", ("row 1, column 1: there is a “;” but no row",)),
    "a missing LaTeX entry": (r"\begin{bmatrix}1&&2\end{bmatrix}", ("row 1, column 2: there is a comma",)),
    "NaN": ("1 nan", ("-Q: row 1, column 2: NaN is not a number to calculate with. Write a number there.",)),
    "NaN by arithmetic": ("inf-inf 1", ("“inf-inf” is not a number: it has no value. Write −∞ as -inf.",)),
    "beyond float64": ("1e400 2", ("“1e400” is too large: numbers here go up to about 1.8e308.", "Write inf or -inf")),
    "a power tower": ("9^9^9^9 1", ("“9^9^9^9” is too large",)),
    "a tall power tower": ("2^" * 45 + "2 1", ("is too large",)),
    "an exponential": ("exp(1000) 2", ("“exp(1000)” is too large",)),
    "division by zero": ("1/0 2", ("“1/0” divides by zero. Write inf or -inf if you mean infinity.",)),
    "a LaTeX division by zero": (r"$\frac{1}{0}$ 2", ("divides by zero",)),
    "zero to a negative power": ("0^-1 2", ("divides by zero",)),
    "a root of a negative": ("sqrt(-1) 2", ("takes the square root of a negative number, which is not real",)),
    "a complex power": ("(-8)^(1/3) 2", ("“(-8)^(1/3)” is not a real number",)),
    "a root without brackets": ("sqrt2 2", ("write sqrt with brackets, like sqrt(2).",)),
    "Python code": ("__import__('os').system('touch hacked') 1", ("is not a number: “_” does not belong in one",)),
    "a lambda": ("(lambda: 1)() 1", ("is not a number: “:” does not belong in one",)),
    "an attribute": ("().__class__ 1", ("is not a number",)),
    "an expression of names": ("Q@K 1", ("“Q@K” is not a number",)),
    "two numbers in round brackets": ("(1 2) 3", ("“(1 2)” is not a number: “2” does not belong there",)),
    "a list for a factor": ("2(1, 2)", ("is not a number: “,” does not belong in one",)),
    "an open round bracket": ("(1+2", ("“(1+2”: a bracket “(” is not closed. Write “)” where it ends.",)),
    "a closing round bracket": ("1) 2", ("“1)” is not a number: “)” does not belong there",)),
    "an open bracket": ("[[1,2],[3,4]", ("A bracket “[” is not closed. Write [[1,2],[3,4]]",)),
    "a closing bracket": ("1 2]", ("There is a “]” without a “[” before it",)),
    "four axes": ("[[[[1,2]]]]", ("Brackets are nested more than 3 deep",)),
    "numbers beside brackets": ("[1,[2]]", ("Numbers and bracketed rows are mixed",)),
    "a bar inside a row": ("[[1|2]]", ("“|” separates heads; it does not belong inside a row.",)),
    "100,000 brackets": ("[" * 100_000, ("Brackets are nested more than 3 deep",)),
    "100,000 round brackets": ("(" * 100_000 + "1", ("is too long for one number",)),
    "200 round brackets": ("(" * 200 + "1" + ")" * 200, ("is too long for one number (more than 100 signs)",)),
    "a number of 100,000 digits": (
        "1" * 100_000,
        ("is too long for one number (100000 characters; the limit is 1100)",),
    ),
    "100,000 decimals": ("0." + "1" * 100_000, ("is too long for one number",)),
    "a sum without end": ("1+" * 400 + "1", ("is too long for one number",)),
    "an operator at the end": ("1+ ", ("“1+” stops in the middle of a number",)),
    "an unknown LaTeX command": (r"\foo{1} 2", ("The LaTeX command “\\foo” is not known here", "Use bmatrix")),
    "a blank": ("1 ?", ("row 1, column 2: “?” marks a cell left open, which only an answer may have",)),
    "an underscore as blank": ("_ 1", ("“_” marks a cell left open",)),
    "infinity as an input": ("inf 1", ("Q[1,1] is not a finite number. Only scores and masks may hold -inf.",)),
    "a control character": ("1\x07 2", ("“1�” is not a number",)),
    "a terminal escape": ("1\x1b[31m 2", ("A bracket “[” is not closed",)),
    "a word in brackets": ("[bold] 2", ("“bold” is not a number",)),
    "a comment": ("1 2 # three", ("row 1, column 3: “#” is not a number",)),
    "quotes": ('"1" 2', ('“"1"” is not a number',)),
}


@pytest.mark.parametrize("kind", TEXTS)
def test_texts_as_an_option(kind: str) -> None:
    text, words = TEXTS[kind]
    refused(q(text), *words)


def test_a_comma_that_would_not_help_is_not_spoken_of(files: Path) -> None:
    for commas in ("1,2,3", "1,2 3,4 5,6", "1,2;3,4 5,6,7"):
        assert "comma" not in refused(q(commas)), commas


def test_the_same_message_from_an_option_a_file_a_problem_and_python(files: Path) -> None:
    """The place in front differs, and nothing else."""
    plain = "row 2, column 2: “x” is not a number: “x” does not belong there. " + NUMBERS
    (files / "bad.txt").write_text("1 2; 3 x")
    (files / "bad.toml").write_text(TOML.replace('"1 2"', '"1 2; 3 x"'))
    assert refused(q("1 2; 3 x")) == f"attncli: -Q: {plain}\n"
    assert refused(q("@bad.txt")) == f"attncli: -Q: bad.txt: {plain}\n"
    assert refused(q("-"), stdin=b"1 2; 3 x") == f"attncli: -Q: standard input: {plain}\n"
    assert refused(["forward", "bad.toml"]) == f"attncli: bad.toml: inputs.Q: {plain}\n"
    assert refused(["forward", "-"], stdin=(files / "bad.toml").read_bytes()) == (
        f"attncli: standard input: inputs.Q: {plain}\n"
    )
    with pytest.raises(attncli.InputError) as caught:
        attncli.problem(inputs={"Q": "1 2; 3 x"})
    assert str(caught.value) == f"inputs.Q: {plain}"


#: Whole commands, and the words of the message.
COMMANDS: dict[str, tuple[list[str], tuple[str, ...]]] = {
    # shapes
    "Q of another width": (q("1 2 3"), ("K is 2×2: it has 2 columns", "axis “d_k” has length 3, set by Q (1×3)", "Give K 3 columns, or change Q.")),
    "Q with a decimal comma": (q("1,5 2"), ("K is 2×2", "A comma separates entries, so “1,5” was read as 1 and 5. If it was meant as one number, write 1.5.")),
    "a row with one": (q("1,5 2; 3 4"), ("-Q: Row 2 has 2 entries, but row 1 has 3.", "write 1.5.")),
    "upstream with one": ([*BACKWARD, "--upstream", "0，5 1"], ("G_O is 1×3", "write 0.5.")),
    "K of another width": (["forward", *Q, "-K", "1 0 0", *V], ("K is 1×3", "“d_k”", "set by Q (1×2)")),
    "V with too few rows": (["forward", *Q, *K, "-V", "2 0"], ("V is 1×2: it has 1 row, but the axis “key” has length 2, set by K (2×2). Give V 2 rows, or change K.",)),
    "Q with heads, K without": (q("1 2 | 3 4"), ("K has shape 2×2, but it needs 3 axes: head × key × d_k", "one block per head")),
    "upstream too wide": ([*BACKWARD, "--upstream", "1 2 3"], ("G_O is 1×3", "“d_v” has length 2, set by V")),
    "upstream too tall": ([*BACKWARD, "--upstream", "1 2; 3 4"], ("G_O is 2×2: it has 2 rows", "“query” has length 1, set by Q")),
    "X and W_Q do not fit": (["forward", "--set", "X=1 2", "--set", "W_Q=1", "--set", "W_K=1", "--set", "W_V=1"], ("W_Q is 1×1", "d_model", "set by X (1×2)")),
    "W_K of another width": ([*SELF[:-1], "W_K=1; 2", "--set", "W_V=1 0; 0 1"], ("W_K is 2×1", "“d_k”", "set by W_Q")),
    "W_V of another height": ([*SELF, "--set", "W_V=1 0"], ("W_V is 1×2", "set by X")),
    "mask too wide": ([*FORWARD, "--mask", "0 0 0"], ("mask is 1×3, but the scores are 1×2", "one row per query and one column per key (1×2)")),
    "keep too wide": ([*FORWARD, "--set", "keep=1 0 1"], ("keep is 1×3, but the scores are 1×2",)),
    "hide too tall": ([*FORWARD, "--set", "hide=1 0; 0 1; 1 1"], ("hide is 3×2, but the scores are 1×2",)),
    "target of another shape": ([*BACKWARD, "--loss", "mse(O, Y)", "--set", "Y=1 2 3"], ("The target Y is 1×3, but the output O is 1×2",)),
    "ids in rows": ([*TABLE, "--set", "T=0 1; 1 0"], ("T is a list of ids, but 2 rows were given. Write one row, like “0 2 1”.",)),
    # masks and settings
    "an ambiguous 0/1 mask": ([*FORWARD, "--mask", "0 1"], ("--mask: this mask holds only 0 and 1", "If 1 means “may be seen”, give it as keep", "if 1 means “hidden”, give it as hide")),
    "a mask of +inf": ([*FORWARD, "--mask", "inf 0"], ("--mask: a mask of +∞", "Write -inf to hide a key")),
    "a mask that is no matrix": ([*FORWARD, "--mask", "x"], ("--mask: row 1, column 1: “x” is not a number",)),
    "marks that are numbers": ([*FORWARD, "--set", "keep=1 2"], ("--set keep: write only true and false (or 1 and 0) here",)),
    "marks that are words": ([*FORWARD, "--set", "keep=true maybe"], ("--set keep: row 1, column 2: “maybe”", "true and false")),
    "an empty keep": ([*FORWARD, "--set", "keep="], ("--set keep: The matrix is empty",)),
    "causal maybe": ([*FORWARD, "--set", "causal=maybe"], ("--set causal: “maybe” is neither true nor false. Write true or false.",)),
    "scale of 0": ([*FORWARD, "--scale", "0"], ("--scale: A scale of 0 would erase all scores",)),
    "scale misspelt": ([*FORWARD, "--scale", "sqr"], ("--scale: The scale “sqr” does not exist. Did you mean “sqrt”?",)),
    "scale empty": ([*FORWARD, "--scale", ""], ("--scale: “” is not one number",)),
    "scale of two numbers": ([*FORWARD, "--scale", "1 2"], ("--scale: “1 2” is not one number",)),
    "scale infinite": ([*FORWARD, "--scale", "inf"], ("--scale: “inf” is not allowed here. Write a finite number, like 0.5.",)),
    "softcap negative": ([*FORWARD, "--set", "softcap=-1"], ("--set softcap: “-1” is not allowed here. Write a finite number above 0",)),
    "softcap a word": ([*FORWARD, "--set", "softcap=x"], ("--set softcap: “x” is not a number",)),
    "window of one number": ([*FORWARD, "--set", "window=1"], ("--set window: A window is two whole numbers, [left, right]",)),
    "window with a fraction": ([*FORWARD, "--set", "window=1.5 0"], ("--set window: A window is two whole numbers",)),
    "max_over misspelt": ([*FORWARD, "--set", "max_over=al"], ("--set max_over: The value “al” does not exist. Did you mean “all”?",)),
    "a setting of another model": ([*FORWARD, "--set", "eta=1"], ("--set: the input or setting “eta” does not exist",)),
    "a setting misspelt": ([*FORWARD, "--set", "kep=1 0"], ("“kep” does not exist. Did you mean “keep”?",)),
    "an input misspelt": (["forward", "a11-causal-self-attention", "--set", "W_QQ=1"], ("“W_QQ” does not exist. Did you mean “W_Q”?",)),
    "a set without a name": ([*FORWARD, "--set", "=1"], ('--set: “=1” has no name. Write --set NAME=VALUE, like --set X="1 0; 0 1".',)),
    "a set without a value": ([*FORWARD, "--set", "foo"], ("--set: “foo” has no name",)),
    "an unused target": ([*BACKWARD, "--loss", "sum(O)", "--set", "Y=1 2"], ("--set: the input or setting “Y” does not exist",)),
    # ids, text, vocabulary
    "an id out of range": ([*TABLE, "--set", "T=0 3"], ("T, entry 2: id 3 is out of range. E has 3 rows, so ids go from 0 to 2.",)),
    "a negative id": ([*TABLE, "--set", "T=-1 0"], ("T, entry 1: id -1 is out of range",)),
    "a fractional id": ([*TABLE, "--set", "T=0 1.5"], ("T, entry 2: 1.5 is not an id. Ids are whole numbers from 0 to 2.",)),
    "an infinite id": ([*TABLE, "--set", "T=inf"], ("T[1] is not a finite number",)),
    "an unknown token": ([*TABLE, "--set", "text=我恨你", "--set", "vocabulary=我爱你"], ("“恨” (token 2 of the text) is not in the vocabulary: 我 爱 你.", "setting unknown")),
    "a text without vocabulary": ([*TABLE, "--set", "text=我"], ("A text needs a vocabulary", "setting vocabulary")),
    "a vocabulary with duplicates": ([*TABLE, "--set", "text=我", "--set", "vocabulary=我我你"], ("The vocabulary: “我” occurs twice, as id 0 and as id 1. Keep one.",)),
    "an empty vocabulary": ([*TABLE, "--set", "text=我", "--set", "vocabulary="], ("The vocabulary is empty",)),
    "an empty text": ([*TABLE, "--set", "text=", "--set", "vocabulary=我爱你"], ("The text is empty",)),
    "vocabulary and corpus": ([*TABLE, "--set", "text=我", "--set", "vocabulary=我爱你", "--set", "corpus=我爱你"], ("Both vocabulary and corpus are given. Keep one",)),
    "text and ids": ([*TABLE, "--set", "text=我", "--set", "T=0", "--set", "vocabulary=我爱你"], ("Both T and text are given. Keep one",)),
    # models, steps, formats, commands, options
    "nothing to calculate": (["forward"], ('Give matrices, -Q "1 2" -K "1 0; 0 1" -V "2 0; 0 4", or a problem file',)),
    "K and V missing": (["forward", *Q], ('Model attention needs K. Give it like this: -K "1 2; 3 4"',)),
    "no model fits": (["forward", "--set", "W_V=1", "--set", "E=1"], ("No model takes exactly E, W_V. Choose one with --model",)),
    "a model misspelt": ([*FORWARD, "--model", "atention"], ("The model “atention” does not exist. Did you mean “attention”?",)),
    "a model that is a path": ([*FORWARD, "--model", "../graph"], ("The model “../graph” does not exist",)),
    "an empty model": ([*FORWARD, "--model", ""], ("The model “” does not exist. Choose from: attention",)),
    "a model for other inputs": ([*FORWARD, "--model", "softmax"], ("Model softmax: the input “Q” does not exist. Choose from: scores.",)),
    "a step misspelt": ([*FORWARD, "--step", "skores"], ("The step “skores” does not exist. Did you mean “scores”? Choose from: scores, scaled, row_max",)),
    "a gradient step in forward": ([*FORWARD, "--step", "G_Q"], ("--step G_Q: this is a gradient", "Write attncli backward", '--loss "sum(O)"')),
    "a format misspelt": ([*FORWARD, "--format", "jsn"], ("The format “jsn” does not exist. Did you mean “json”?",)),
    "an empty format": ([*FORWARD, "--format", ""], ("The format “” does not exist",)),
    "a private format": ([*FORWARD, "--format", "_view"], ("The format “_view” does not exist",)),
    "a layout misspelt": ([*FORWARD, "--layout", "row"], ("The layout “row” does not exist. Did you mean “rows”?",)),
    "a rounding misspelt": ([*FORWARD, "--rounding", "evn"], ("The rounding “evn” does not exist. Did you mean “even”?",)),
    "too many decimals": ([*FORWARD, "--decimals", "99"], ("--decimals: “99” is not allowed here. Write a whole number from 0 to 15.",)),
    "negative decimals": ([*FORWARD, "--decimals", "-1"], ("--decimals: “-1” is not allowed here",)),
    "decimals a fraction": ([*FORWARD, "--decimals", "2.5"], ("--decimals: “2.5” is not allowed here",)),
    "decimals a word": ([*FORWARD, "--decimals", "x"], ("--decimals: “x” is not allowed here",)),
    "decimals without end": ([*FORWARD, "--decimals", "1" * 5000], ("--decimals: “1111",)),
    "carry and exact": ([*FORWARD, "--carry", "--exact"], ("--carry rounds every step and --exact rounds none. Give one of them.",)),
    "an unknown language": ([*FORWARD, "--lang", "fr"], ("The language “fr” does not exist. Choose from: en, zh.",)),
    "an unknown language before": (["--lang", "fr", *FORWARD], ("The language “fr” does not exist",)),
    "a command misspelt": (["forwrd", *QKV], ("the command “forwrd” does not exist. Did you mean forward? See attncli --help.",)),
    "a subcommand misspelt": (["examples", "sho", "a1-pronoun"], ("the command “sho” does not exist. Did you mean show?",)),
    "a command with a terminal escape": (["\x1b[31mforward"], ("does not exist",)),
    "an option misspelt": ([*FORWARD, "--causl"], ("the option --causl does not exist. Did you mean --causal? See attncli forward --help.",)),
    "an option of another command": ([*FORWARD, "--upstream", "1 2"], ("the option --upstream does not belong here, but to attncli backward",)),
    "verify in forward": ([*FORWARD, "--verify"], ("the option --verify does not belong here, but to attncli backward",)),
    "an option without a value": ([*FORWARD, "-o"], ("the option -o needs a value after it",)),
    "a flag with a value": ([*FORWARD, "--carry=1"], ("the option --carry takes no value",)),
    "an option given twice": ([*FORWARD, "-Q", "3 4"], ("-Q is given twice. Keep one.",)),
    "an option and its --set": ([*FORWARD, "--set", "Q=3 4"], ("-Q and --set Q are the same thing. Keep one of them.",)),
    "a --set given twice": ([*FORWARD, "--set", "softcap=2", "--set", "softcap=3"], ("--set softcap is given twice. Keep one.",)),
    "a matrix without quotes": (["forward", "-Q", "1", "2", *K, *V], ('“2” has no option before it, so it should be a problem file',)),
    "a negative matrix without quotes": (["forward", "-Q", "1", "-2", *K, *V], ('“-2” was given where an option is expected. Put quotes around a matrix',)),
    "two problems": (["forward", "a1-pronoun", "a2-first-by-hand"], ("“a2-first-by-hand” is more than was expected",)),
    "an example misspelt": (["forward", "a1-pronoum"], ("The worked example “a1-pronoum” does not exist. Did you mean “a1-pronoun”?",)),
    "the beginning of an example": (["examples", "show", "a1-p"], ("Did you mean “a1-pronoun”?",)),
    "an example that is a path": (["examples", "run", "../../etc/none"], ("../../etc/none: there is no such file",)),
    "an example missing": (["examples", "show"], ("ID|FILE is missing. See attncli examples show --help.",)),
    "a model to describe misspelt": (["models", "atention"], ("Did you mean “attention”?",)),
    # why
    "why nothing": (["why"], ("STEP [ROW COL] is missing",)),
    "a worksheet of nothing there is": (["worksheet", "attentio"], ("The recipe or worked example “attentio” does not exist. Did you mean “attention”?",)),
    "why without a cell": (["why", "A", *QKV], ("Which number of A? It is 1×2, counted from 1. Write attncli why A 1 2.",)),
    "why a cell of an example": (["why", "a1", "O"], ("Which number of O? It is 1×2, counted from 1. Write attncli why a1 O 1 2.",)),
    "why a cell outside": (["why", "A", "1", "3", *QKV], ("A[1,3] does not exist: A is 1×2, counted from 1. Write attncli why A 1 2.",)),
    "why cell 0": (["why", "A", "0", "1", *QKV], ("A[0,1] does not exist",)),
    "why a fraction": (["why", "A", "1.5", "2", *QKV], ("“1.5” is neither a number nor a name there: A has q1.",)),
    "why a superscript": (["why", "A", "²", "2", *QKV], ("“²” is neither a number nor a name there",)),
    "why a number without end": (["why", "A", "1", "1" * 5000, *QKV], ("is neither a number nor a name there: A has k1, k2",)),
    "why an unknown step": (["why", "B", "1", "1", *QKV], ("The step “B” does not exist",)),
    "why a gradient without loss": (["why", "G_Q", "1", "1", *QKV], ("G_Q is a gradient", "--upstream MATRIX or --loss TEXT")),
    "why deeper than nothing": (["why", "A", "1", "2", *QKV, "--depth", "0"], ("--depth: “0” is not allowed here. Write a whole number from 1 to 1000.",)),
    # gradients and losses
    "backward from nothing": (BACKWARD, ("--upstream MATRIX (the gradient G_O, the shape of O), or --loss TEXT",)),
    "upstream and loss": ([*BACKWARD, "--upstream", "1 2", "--loss", "sum(O)"], ("Both an upstream gradient and a loss are given. Keep one",)),
    "an infinite upstream": ([*BACKWARD, "--upstream", "inf 1"], ("G_O[1,1] is not a finite number",)),
    "an upstream of letters": ([*BACKWARD, "--upstream", "x"], ("--upstream: row 1, column 1: “x” is not a number",)),
    # settings that do not go together
    "an average of no heads": ([*FORWARD, "--set", "average_heads=true"], ("average_heads is given, but there are no heads to average.",)),
    "log of a row without anything": ([*SCORES, "scores=1 2; -inf -inf", "--set", "log=true"], ("has no log-softmax", "show it a key")),
    "log and a hidden row": ([*SCORES, "scores=1 2; 3 4", "--set", "hide=false false; true true", "--set", "log=true"], ("has no log-softmax",)),
    "cached values without V": (["forward", *Q, *K, "--set", "K_past=1 1", "--set", "V_past=1 2"], ("V_past is given without V.",)),
    "a temperature of 0": ([*SCORES, "scores=1 2", "--set", "temperature=0"], ("--set temperature: “0” is not allowed here. Write a finite number above 0",)),
    "a temperature below 0": ([*SCORES, "scores=1 2", "--set", "temperature=-1"], ("--set temperature: “-1” is not allowed here",)),
    "a temperature without end": ([*SCORES, "scores=1 2", "--set", "temperature=inf"], ("--set temperature: “inf” is not allowed here",)),
    "eps in an unknown place": (["forward", "--model", "layer_norm", "--set", "X=1 2", "--set", "eps_place=beside"], ("eps_place: The value “beside” does not exist. Did you mean “inside”? Choose from: inside, outside.",)),
    "positions times 0": ([*ROTARY, "X=1 2", "--set", "position_scale=0"], ("--set position_scale: “0” is not allowed here",)),
    "exponents unknown": (["forward", "--model", "positions", "--set", "n=2", "--set", "d_model=4", "--set", "exponents=odd"], ("exponents: The value “odd” does not exist. Choose from: pairs, columns, pairs-minus-one.",)),
    "exponents by column, sines first": (["forward", "--model", "positions", "--set", "n=2", "--set", "d_model=4", "--set", "exponents=columns", "--set", "arrangement=concatenated"], ("exponents = columns goes with sine and cosine in turn", "leave exponents out")),
    "exponents of positions that are not added": (["forward", "--model", "gpt", *GPT, "--set", "exponents=columns"], ("exponents is given, but this calculation does not use it",)),
    "cosines without sines": ([*ROTARY, "X=1 2", "--set", "cos=1"], ("cos: give either the angles (angle), or both their cosines and sines",)),
    "angles and cosines": ([*ROTARY, "X=1 2", "--set", "cos=1", "--set", "sin=0", "--set", "angle=0"], ("angle, cos, sin: give either the angles",)),
    "more angles than pairs": ([*ROTARY, "X=1 2", "--set", "angle=1 2"], ("angle is 1×2: 2 pairs need 4 columns, but X has 2.",)),
    "angles for other rows": ([*ROTARY, "X=1 2; 3 4", "--set", "angle=1"], ("angle", "token")),
    "angles and a base": ([*ROTARY, "X=1 2", "--set", "angle=1", "--set", "base=5"], ("base is given, but this calculation does not use it",)),
    "a scale of positions that are not turned": ([*SELF, "--set", "W_V=1 0; 0 1", "--model", "multi_head", "--set", "position_scale=2"], ("position_scale is given, but nothing is turned. Add rotary = true",)),
    "gradients of ids alone": (["backward", "c1-encode", "--upstream", "1"], ("has no gradients",)),
}  # fmt: skip


@pytest.mark.parametrize("kind", COMMANDS)
def test_commands(kind: str) -> None:
    argv, words = COMMANDS[kind]
    refused(argv, *words)


LOSSES = {
    "": "The loss is empty. Write sum(O), O[1,1] + 2*O[1,2], 1/2*sum((O - target)^2), mse(O, target), or cross_entropy(O, classes).",
    "sm(O)": "The loss “sm(…)” is not known here. Did you mean sum?",
    "sum(O": "The loss “sum(O” stops in the middle. Write sum(O)",
    "sum()": "sum takes one matrix.",
    "sum(Q)": "The loss names “Q”, but the output here is O.",
    "O[3,1]": "The loss names O[3,1], but O is 1×2: rows and columns are counted from 1.",
    "O[0,1]": "The loss names O[0,1]",
    "O[1]": "The loss names O[1]",
    "O[,1,]": "cannot be read from “,1,]” on",
    "O[1,1": "The loss “O[1,1” stops in the middle.",
    "O[1,-1]": "cannot be read from “-1]” on",
    "O[1.5,1]": "cannot be read from “1.5,1]” on",
    "O[a,b]": "cannot be read from “a,b]” on",
    "O[1,1] O[1,2]": "cannot be read from “O[1,2]” on",
    "O[1,1]**2": "cannot be read from “*2” on",
    "C[1,1]": "The loss names “C”",
    "x*O[1,1]": "The loss “x*O[1,1]” cannot be read from “x*O[1,1]” on",
    "1/0*O[1,1]": "has a factor that is not finite",
    "9^9^9^9*O[1,1]": "cannot be read from “^9^9*O[1,1]” on",
    "9^9^9*O[1,1]": "cannot be read from “^9*O[1,1]” on",
    "9^999*O[1,1]": "is too large",
    "inf*O[1,1]": "has a factor that is not finite",
    "O[1,1]/0": "has a factor that is not finite",
    "O[" + "1" * 5000 + ",1]": "The loss names O[1111",
    "mse(O)": "mse takes the output and a target.",
    "mse(O,)": "mse takes the output and a target.",
    "mse(O, Y)": 'The loss names the target “Y”, which is not given.',
    "mse(O, Q)": "The loss names “Q” as its target, but that is part of this calculation already.",
    "mse(O, L)": "The loss names “L” as its target",
    "mse(O, error)": "The loss names “error” as its target",
    "mse(O, G_Q)": "The loss names “G_Q” as its target",
    "__import__('os')": "The loss “__import__(…)” is not known here",
    "\x1b[31m": "cannot be read",
    "O[1,1]+" * 2000: "The loss has 14000 characters; the limit is 10000.",
}  # fmt: skip


@pytest.mark.parametrize("loss", LOSSES, ids=range(len(LOSSES)))
def test_losses(loss: str) -> None:
    refused([*BACKWARD, "--loss", loss], LOSSES[loss])


def header(description: bytes) -> bytes:
    """An .npy file of this header and no data."""
    return b"\x93NUMPY\x01\x00" + len(description).to_bytes(2, "little") + description


class Touch:
    """A pickle that would run code."""

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return os.system, ("touch hacked",)


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of bad files, with good ones to name beside them."""
    folder = tmp_path_factory.mktemp("bad")

    def npy(array: object) -> bytes:
        buffer = io.BytesIO()
        np.save(buffer, np.asarray(array), allow_pickle=True)
        return buffer.getvalue()

    good = npy([[1.0, 2.0]])
    wide = f"{{'descr':'<f8','fortran_order':False,'shape':({10**9},{10**9}),}}".encode()
    contents: dict[str, bytes | str] = {
        "object.npy": npy(np.array([Touch(), None], dtype=object)),
        "complex.npy": npy([1j]),
        "text.npy": npy(["1"]),
        "records.npy": npy(np.zeros(2, dtype=[("a", float)])),
        "dates.npy": npy(np.array(["2020-01-01"], dtype="datetime64[D]")),
        "nan.npy": npy([[1.0, np.nan]]),
        "infinite.npy": npy([[1.0, np.inf]]),
        "empty-array.npy": npy(np.zeros((0, 2))),
        "cube.npy": npy(np.zeros((1, 1, 1, 2))),
        "vector.npy": npy([1.0, 2.0]),
        "longdouble.npy": npy(np.array([[np.longdouble("1e400"), 1]])) if np.finfo(np.longdouble).max > 1e308 else b"",
        "good.npy": good,
        "truncated.npy": good[:-4],
        "header.npy": good[:20],
        "empty.npy": b"",
        "noise.npy": bytes(range(256)),
        "bomb.npy": header(wide),
        "nested.npy": header(b"{'descr':'<f8','fortran_order':False,'shape':" + b"(" * 300),
        "negative.npy": header(b"{'descr':'<f8','fortran_order':False,'shape':(-1,-5),}") + bytes(40),
        "code.npy": header(b"__import__('os').system('touch hacked')"),
        "pickle.npy": pickle.dumps(Touch()),
        "empty.npz": b"",
        "noise.npz": b"PK" + bytes(100),
        "latin.txt": b"1 \xe9",
        "utf16.txt": "1 2".encode("utf-16"),
        "binary.txt": b"\0\1\2",
        "empty.txt": "",
        "header.csv": "apples,bags\n1,2\n3,4\n",
        "quoted-header.csv": '"apples","bags"\n1,2\n',
        "gap.csv": "1,,2\n",
        "semicolons.csv": "1,5;2,5\n",
        "nested.json": "[" * 100_000 + "]" * 100_000,
        "open.json": "[[1,2]",
        "nan.json": "[[NaN, 1]]",
        "infinite.json": "[[Infinity, 1]]",
        "large.json": "[[1e400, 1]]",
        "digits.json": "[[" + "1" * 10_000 + ",2]]",
        "table.json": '{"Q": [[1,2]]}',
        "null.json": "[[1,null]]",
        "true.json": "[[1,true]]",
        "ragged.json": "[[1,2],[1]]",
        "two.json": '[["1 2","3"]]',
        "rows.json": '[["1;2","3"]]',
        "deep.json": "[[[[1]]]]",
        "mixed.json": "[1,[2]]",
        "empty-list.json": "[]",
    }
    for name, content in contents.items():
        (folder / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    with zipfile.ZipFile(folder / "bomb.npz", "w", zipfile.ZIP_DEFLATED) as archive, archive.open("Q.npy", "w") as file:
        for _ in range(60):
            file.write(bytes(10_000_000))
    with zipfile.ZipFile(folder / "several.npz", "w") as archive:
        archive.writestr("Q.npy", good)
        archive.writestr("K.npy", npy(np.array([Touch()], dtype=object)))
        archive.writestr("\x1b[31m.npy", b"")
    damaged = bytearray((folder / "several.npz").read_bytes())
    damaged[60] ^= 0xFF
    (folder / "damaged.npz").write_bytes(damaged)
    (folder / "folder").mkdir()
    return folder


@pytest.fixture(autouse=True)
def _there(files: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(files)


FILES: dict[str, tuple[str, ...]] = {
    "object.npy": ("-Q: object.npy: holds Python objects, which are never loaded (a pickle can run code)", "Save plain numbers"),
    "several.npz:K": ("several.npz: holds Python objects, which are never loaded",),
    "pickle.npy": ("pickle.npy: is not a readable .npy file",),
    "code.npy": ("code.npy: is not a readable .npy file",),
    "complex.npy": ("complex.npy: holds complex numbers, not real numbers. Save plain floats or integers.",),
    "text.npy": ("text.npy: holds text, not real numbers",),
    "records.npy": ("records.npy: holds records of several fields, not real numbers",),
    "dates.npy": ("dates.npy: holds dates or times, not real numbers",),
    "nan.npy": ("nan.npy: holds NaN at [1,2], which is not a number to calculate with. Write a number there.",),
    "infinite.npy": ("Q[1,2] is not a finite number",),
    "empty-array.npy": ("Q is 0×2, so it is empty. Give it at least one number.",),
    "cube.npy": ("Q has shape 1×1×1×2, but it needs 2 axes: query × d_k",),
    "vector.npy": ("Q has shape 2, but it needs 2 axes",),
    "truncated.npy": ("truncated.npy: stops in the middle of its array. Save it again.",),
    "header.npy": ("header.npy: is not a readable .npy file", "Write it with numpy.save."),
    "empty.npy": ("empty.npy: is not a readable .npy file",),
    "noise.npy": ("noise.npy: is not a readable .npy file",),
    "nested.npy": ("nested.npy: is not a readable .npy file",),
    "negative.npy": ("negative.npy: is not a readable .npy file",),
    "bomb.npy": ("bomb.npy: holds an array of 8,000,000,000,000,000,000 bytes (1000000000×1000000000); the limit here is 64,000,000.",),
    "bomb.npz": ("bomb.npz: the array Q unpacks to 600,000,000 bytes; the limit here is 64,000,000.",),
    "empty.npz": ("empty.npz: is not a readable .npz file", "Write it with numpy.savez."),
    "noise.npz": ("noise.npz: is not a readable .npz file",),
    "damaged.npz:Q": ("damaged.npz: is not a readable .np",),
    "several.npz": ("several.npz: holds several arrays: Q, K", "Say which one, like @several.npz:Q."),
    "several.npz:X": ("several.npz: holds no array “X”. It holds: Q, K",),
    "latin.txt": ("latin.txt: is not UTF-8 text (byte 3 is 0xe9). Save it as UTF-8",),
    "utf16.txt": ("utf16.txt: is not UTF-8 text (byte 1 is 0xff)",),
    "binary.txt": ("binary.txt: row 1, column 1: “���” is not a number",),
    "empty.txt": ("empty.txt: The matrix is empty",),
    "header.csv": ("header.csv: the first row is a header (apples, bags). Remove it: only numbers are allowed here.",),
    "quoted-header.csv": ("quoted-header.csv: the first row is a header (apples, bags)",),
    "gap.csv": ("gap.csv: row 1, column 2: there is a comma but no number",),
    "semicolons.csv": ("semicolons.csv: this CSV file holds “;”. Separate cells with commas", "decimals with a point"),
    "nested.json": ("nested.json: is nested too deep to be read",),
    "open.json": ("open.json: is not valid JSON at line 1, column 7",),
    "nan.json": ("nan.json: row 1, column 1: NaN is not a number to calculate with",),
    "infinite.json": ("Q[1,1] is not a finite number",),
    "large.json": ("large.json: row 1, column 1: “1e400” is too large",),
    "digits.json": ("digits.json: row 1, column 1: “1111", "is too long for one number"),
    "table.json": ('table.json: “{"Q": [[1, 2]]}” is not a matrix. Write text like “1 2; 3 4”, or rows like [[1, 2], [3, 4]].',),
    "null.json": ("null.json: row 1, column 2: “null” was given where a number is expected",),
    "true.json": ("true.json: row 1, column 2: “true” was given where a number is expected",),
    "ragged.json": ("ragged.json: Row 2 has 1 entry, but row 1 has 2",),
    "two.json": ("two.json: row 1, column 1: “1 2” is not one number",),
    "rows.json": ("rows.json: row 1, column 1: “1;2” is not a number",),
    "deep.json": ("deep.json: Brackets are nested more than 3 deep",),
    "mixed.json": ("mixed.json: Numbers and bracketed rows are mixed",),
    "empty-list.json": ("empty-list.json: The matrix is empty",),
    "folder": ("folder: this is a folder. Give a file.",),
    "god.npy": ("god.npy: there is no such file. Did you mean good.npy?",),
    "nowhere/at/all.txt": ("nowhere/at/all.txt: there is no such file. Check the name, or where you are.",),
    "/dev/zero": ("/dev/zero: has more than 16,000,000 bytes, the limit here. Give a smaller file.",),
    "/dev/null": ("/dev/null: The matrix is empty",),
    "": ("-Q: @ needs the name of a file after it, like @matrix.txt.",),
    "a\0b": ("cannot be opened",),
    "x" * 5000: ("cannot be opened (the name is too long)",),
    "\x1b[31mred\x07.txt": ("�[31mred�.txt: there is no such file",),
}  # fmt: skip


@pytest.mark.parametrize("name", FILES, ids=[repr(name[:30]) for name in FILES])
def test_files(name: str) -> None:
    refused(q(f"@{name}"), *FILES[name])
    assert not Path("hacked").exists()


def test_numbers_beyond_float64_in_an_array_are_not_taken_for_infinity() -> None:
    if Path("longdouble.npy").stat().st_size:
        refused(q("@longdouble.npy"), "holds 1e+400 at [1,1]")


def test_settings_from_files_name_the_file(files: Path) -> None:
    (files / "marks.txt").write_text("true perhaps")
    np.save(files / "mask.npy", np.array([[False, True]]))
    refused([*FORWARD, "--set", "keep=@marks.txt"], "--set keep: marks.txt: row 1, column 2: “perhaps”")
    refused(
        [*FORWARD, "--set", "keep=@mark.txt"], "--set keep: mark.txt: there is no such file. Did you mean marks.txt?"
    )
    refused([*FORWARD, "--mask", "@mask.npy"], "--mask: mask.npy: this mask holds only 0 and 1")


#: Problem files, and the words of the message after the file's name.
PROBLEMS: dict[str, tuple[str | bytes, tuple[str, ...]]] = {
    "empty": ("", ("the key “model” is missing. Add it.",)),
    "no inputs": ('model = "attention"', ("the key “inputs” is missing",)),
    "not TOML": ("model = ", ("is not valid TOML: the value cannot be read",)),
    "binary": (b"\x89PNG\r\n\x1a\n", ("is not UTF-8 text (byte 1 is 0x89)",)),
    "zeros": (b"\0" * 100, ("is not valid TOML",)),
    "a misspelt key": (TOML.replace("model", "modl"), ("The key “modl” does not exist. Did you mean “model”?",)),
    "a misspelt table": (TOML.replace("[inputs]", "[input]"), ("The key “input” does not exist. Did you mean “inputs”?",)),
    "a misspelt model": (TOML.replace("attention", "attenton"), ("The model “attenton” does not exist. Did you mean “attention”?",)),
    "a misspelt inner key": (TOML + "[marking]\npoint = {}\n", ("“marking.point” does not exist. Did you mean “marking.points”?",)),
    "a misspelt input": (TOML + 'Vv = "1"\n', ("Model attention: the input “Vv” does not exist. Did you mean “V”?",)),
    "a misspelt setting": (TOML + "[settings]\ncausl = true\n", ("settings: Model attention: the setting “causl” does not exist. Did you mean “causal”?",)),
    "a misspelt step": ("decimals = { default = 3, scaledd = 2 }\n" + TOML, ("decimals: the step “scaledd” does not exist. Did you mean “scaled”?",)),
    "a misspelt published step": (TOML + '[published]\nAA = "1 2"\n', ("published: the step “AA” does not exist",)),
    "a misspelt step with points": (TOML + "[marking]\npoints = { score = 1 }\n", ("marking.points: the step “score” does not exist. Did you mean “scores”?",)),
    "a misspelt loss": (TOML + '[gradient]\nlos = "sum(O)"\n', ("gradient: the key “los” does not exist. Did you mean “loss”?",)),
    "a misspelt axis": (TOML + '[labels]\nqury = ["a"]\n', ("labels: the axis “qury” does not exist. Did you mean “query”?",)),
    "a duplicate key": (TOML + 'K = "1"\n', ("is not valid TOML: a name occurs twice (",)),
    "a duplicate table": (TOML + "[inputs]\n", ("is not valid TOML: a name occurs twice (line",)),
    "100,000 brackets": ("a = " + "[" * 100_000, ("is nested too deep to be read",)),
    "100,000 tables": ("a = " + "{a = " * 100_000, ("is nested too deep to be read",)),
    "a key of 50,000 parts": (".".join("a" * 50_000) + " = 1", ("has a key of more than 50 parts",)),
    "a quoted key of 50,000 parts": (".".join(['"a b"'] * 50_000) + " = 1", ("has a key of more than 50 parts",)),
    "a million digits": ("a = " + "1" * 1_000_000, ("holds a whole number of more than 4300 digits",)),
    "a hexadecimal of 20,000 bits": (TOML.replace('"1 2"', "[[0x" + "f" * 5000 + ", 2]]"), ("inputs.Q: row 1, column 1: a whole number of more than 400 digits is too large",)),
    "a large number": (TOML.replace('"1 2"', "[[1e400, 2]]"), ("inputs.Q: row 1, column 1: “1e400” is too large",)),
    "NaN": (TOML.replace('"1 2"', "[[1, nan]]"), ("inputs.Q: row 1, column 2: NaN is not a number to calculate with",)),
    "infinity": (TOML.replace('"1 2"', "[[1, inf]]"), ("Q[1,2] is not a finite number",)),
    "a truth value": (TOML.replace('"1 2"', "[[1, true]]"), ("inputs.Q: row 1, column 2: “true” was given where a number is expected",)),
    "a date": (TOML.replace('"1 2"', "[[1, 2020-01-01]]"), ("inputs.Q: row 1, column 2: “2020-01-01” is not a number",)),
    "a date as setting": (TOML + "[settings]\nsoftcap = 2020-01-01\n", ("settings.softcap: “2020-01-01” is not a number",)),
    "a table as matrix": (TOML.replace('"1 2"', "{ a = 1 }"), ("inputs.Q: The key “a” does not exist. Choose from: random, shape, seed.",)),
    "an empty list": (TOML.replace('"1 2"', "[]"), ("inputs.Q: The matrix is empty",)),
    "a file in a file": (TOML.replace('"1 2"', '"@/etc/passwd"'), ("inputs.Q: “@/etc/passwd” leads out of the folder of the file that names it",)),
    "standard input in a file": (TOML.replace('"1 2"', '"-"'), ("inputs.Q: row 1, column 1: “-” stops in the middle of a number",)),
    "too many decimals": ("decimals = 99\n" + TOML, ("decimals: 99 is out of range: it must be ≤ 15.",)),
    "a fraction of decimals": ("decimals = 1.5\n" + TOML, ("decimals: found “1.5”, expected a whole number.",)),
    "decimals as text": ("decimals = '3'\n" + TOML, ("decimals: “3” is not allowed here. Write a whole number from 0 to 15, or “as written”.",)),
    "too many decimals of a step": ("decimals = { A = 99 }\n" + TOML, ("decimals.A: 99 is out of range",)),
    "another schema": ("schema = 2\n" + TOML, ("schema: “2” is not allowed here. Write 1.",)),
    "an id with spaces": ("id = 'a b'\n" + TOML, ("id: “a b” does not work as a name",)),
    "a layout": ("layout = 'row'\n" + TOML, ("layout: “row” is not allowed here. Write 'rows', 'columns'.",)),
    "a title without language": ("title = 'x'\n" + TOML, ("title: found “x”, expected a table of keys.",)),
    "another language": (TOML + "[title]\nfr = 'x'\n", ("title.fr: “fr” is not allowed here. Write 'en', 'zh'.",)),
    "labels too many": (TOML + '[labels]\nquery = ["a", "b"]\n', ("labels.query: 2 names given, but the axis “query” has length 1. Give one name for each.",)),
    "labels as text": (TOML + '[labels]\nquery = "a"\n', ("labels.query: found “a”, expected a list in [ ].",)),
    "labels as numbers": (TOML + "[labels]\nquery = [1]\n", ("labels.query.0: found “1”, expected text in quotes.",)),
    "causal as a number": (TOML + "[settings]\ncausal = 1\n", ("settings.causal: “1” is neither true nor false",)),
    "an ambiguous mask": (TOML + "[settings]\nmask = [[0, 1]]\n", ("settings.mask: this mask holds only 0 and 1",)),
    "marks": (TOML + "[settings]\nkeep = [[true, 2]]\n", ("settings.keep: write only true and false (or 1 and 0) here",)),
    "a scale that is a list": (TOML + "[settings]\nscale = [1]\n", ("settings.scale: “[1]” is not a number",)),
    "a mask of another shape": (TOML + "[settings]\nmask = [[0, 0, 0]]\n", ("mask is 1×3, but the scores are 1×2",)),
    "V of another shape": (TOML.replace('"2 0; 0 4"', '"2 0"'), ("V is 1×2: it has 1 row, but the axis “key” has length 2, set by K",)),
    "a gradient of another shape": (TOML + '[gradient]\nG_O = "1"\n', ("G_O is 1×1",)),
    "a gradient of something else": (TOML + '[gradient]\nG_Q = "1 2"\n', ("gradient.G_Q: the output here is O, so its gradient is called G_O. Write G_O = …",)),
    "two gradients": (TOML + '[gradient]\nG_O = "1 2"\nG_Q = "1 2"\n', ("gradient: G_O, G_Q are given. Give one",)),
    "gradient and loss": (TOML + '[gradient]\nG_O = "1 2"\nloss = "sum(O)"\n', ("gradient: both G_O and loss are given. Keep one.",)),
    "a loss as a number": (TOML + "[gradient]\nloss = 3\n", ("gradient.loss: “3” is not text",)),
    "a target without use": (TOML + '[gradient]\nloss = "sum(O)"\nY = "1 2"\n', ("gradient: the key “Y” does not exist",)),
    "negative points": (TOML + "[marking]\npoints = { A = -1 }\n", ("marking.points.A: -1 is out of range: it must be > 0.",)),
    "points that are no number": (TOML + "[marking]\npoints = { A = nan }\n", ("marking.points.A: nan is out of range",)),
    "published numbers as numbers": (TOML + "[published]\nA = 3\n", ("published.A: found “3”, expected text in quotes.",)),
    "a terminal escape as key": ('"\\u001b[31m" = 1\n' + TOML, ("The key “�[31m” does not exist",)),
    "JSON: open": ('{"model": ', ("is not valid JSON at line 1, column 11",)),
    "JSON: a duplicate key": ('{"model": "attention", "model": "softmax", "inputs": {}}', ("the key “model” occurs twice. Keep one.",)),
    "JSON: NaN": ('{"model": "attention", "inputs": {"Q": [[NaN, 1]]}}', ("inputs.Q: row 1, column 1: NaN",)),
    "JSON: null": ('{"model": "attention", "inputs": {"Q": null}}', ("inputs.Q: “null” is not a matrix",)),
    "JSON: null as model": ('{"model": null, "inputs": {}}', ("model: found “null”, expected text in quotes.",)),
    "JSON: deep": ('{"a":' * 100_000, ("is nested too deep to be read",)),
    "JSON: half a character": ('{"\\ud800": 1, "model": "attention", "inputs": {}}', ("expected text in quotes",)),
    "JSON: infinite decimals": ('{"model": "attention", "inputs": {"Q": "1"}, "decimals": Infinity}', ("decimals: found “inf”, expected a whole number",)),
}  # fmt: skip


@pytest.mark.parametrize("kind", PROBLEMS)
def test_problem_files(kind: str, files: Path) -> None:
    content, words = PROBLEMS[kind]
    command = (
        "backward" if b"[gradient]" in (content if isinstance(content, bytes) else content.encode()) else "forward"
    )
    (files / "problem.toml").write_bytes(content if isinstance(content, bytes) else content.encode())
    err = refused([command, "problem.toml"], *words)
    assert err.startswith("attncli: problem.toml: ")


@pytest.mark.parametrize("data", ["[]", "3", "null", '"x"'])
def test_json_that_is_no_table(data: str, files: Path) -> None:
    (files / "problem.json").write_text(data)
    refused(["forward", "problem.json"], "problem.json: A problem is a table of keys", "Write model = … and [inputs].")


def test_an_option_that_is_wrong_for_a_good_file_is_not_blamed_on_the_file(files: Path) -> None:
    (files / "good.toml").write_text(TOML)
    assert refused(["forward", "good.toml", "--mask", "0 0 0"]).startswith("attncli: mask is 1×3")


def test_missing_problem_files() -> None:
    refused(["forward", "god.toml"], "god.toml: there is no such file.")
    refused(["forward", "nowhere/x"], "nowhere/x: there is no such file.")
    refused(["forward", "folder"], "folder: this is a folder. Give a file.")
    refused(["forward", "x" * 5000], "does not exist")
    refused(["forward", "\x1b[2J"], "�[2J")


def test_standard_input() -> None:
    refused(["forward", "-Q", "-", "-K", "-", *V], "-K: Only one input can come from standard input (-).", stdin=b"1 2")
    refused(["forward", "-", "-Q", "-"], "-Q: Only one input can come", stdin=TOML.encode())
    refused(q("-"), "-Q: Standard input is closed. Give the matrix as text or as @FILE.", stdin=None)
    refused(["forward", "-"], "standard input: the key “model” is missing", stdin=b"")
    refused(q("-"), "standard input: The matrix is empty", stdin=b"")
    refused(q("-"), "Standard input has more than 16,000,000 bytes", stdin=b"1 " * 8_000_001)
    refused(q("-"), "standard input: is not UTF-8 text", stdin=b"\xff")


OUTPUTS = {
    "nowhere/out.md": "-o nowhere/out.md: cannot be written (there is no such file or folder). Check that the folder exists",
    "folder": "-o folder: this is a folder. Give a file name in it, like folder/trace.md.",
    "": "-o “”: the name is empty. Give a file name, like trace.md",
    "good.npy/x": "cannot be written (part of the path is not a folder)",
    "/proc/out": "-o /proc/out: cannot be written",
    "/dev/full": "-o /dev/full: cannot be written (the disk is full)",
    "x" * 300: "cannot be written (the name is too long)",
    "a\0b": "cannot be written",
    "nowhere/\x1b[31m": "-o nowhere/�[31m: cannot be written",
}


@pytest.mark.parametrize("target", OUTPUTS, ids=range(len(OUTPUTS)))
def test_outputs_that_cannot_be_written(target: str, files: Path) -> None:
    before = sorted(files.iterdir())
    refused([*FORWARD, "-o", target], OUTPUTS[target])
    assert sorted(files.iterdir()) == before


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_outputs_without_permission(files: Path) -> None:
    (files / "locked").mkdir(mode=0o500)
    refused([*FORWARD, "-o", "locked/out.md"], "cannot be written (you do not have permission)")


def test_a_failed_write_leaves_the_old_file(files: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert run(*FORWARD, "-o", "kept.md").status == 0
    before = (files / "kept.md").read_bytes()

    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fdopen", fail)
    refused([*FORWARD, "-o", "kept.md"], "-o kept.md: cannot be written (the disk is full)")
    assert (files / "kept.md").read_bytes() == before
    assert not list(files.glob(".attncli-*"))


def test_bad_input_leaves_the_old_file(files: Path) -> None:
    (files / "kept.md").write_text("old")
    refused([*q("x"), "-o", "kept.md"])
    assert (files / "kept.md").read_text() == "old"


# Streams that only a process of its own has.


def attncli_process(argv: Sequence[str], shell_end: str, unbuffered: str = "") -> tuple[int, str]:
    """Exit status and standard error of a process whose streams the shell redirects."""
    command = '"$0" -m attncli "$@"' + shell_end
    environment = {**os.environ, "ATTNCLI_LANG": "en", "PYTHONUNBUFFERED": unbuffered}
    done = subprocess.run(
        ["bash", "-o", "pipefail", "-c", command, sys.executable, *argv],
        stdin=subprocess.DEVNULL, capture_output=True, env=environment, check=False, timeout=60,
    )  # fmt: skip
    return done.returncode, done.stderr.decode()


LONG = ["forward", "-Q", "; ".join(["1"] * 200), "-K", "; ".join(["1"] * 200), "-V", "; ".join(["1"] * 200), "--format", "json"]  # fmt: skip


@pytest.mark.parametrize(
    ("argv", "end", "words"),
    [
        (FORWARD, " >&-", "the output was closed"),
        (["--help"], " >&-", "the output was closed"),
        ([*FORWARD, "--format", "json"], " >/dev/full", "cannot write the output (the disk is full)"),
        (q("-"), " <&-", "-Q: Standard input is closed"),
        (["forward", "-"], " </dev/zero", "Standard input has more than 16,000,000 bytes"),
        (["forward", "-Q", "x"], "", "-Q: row 1, column 1: “x” is not a number"),
        (["forward", "\udcff\x1b"], "", "The worked example “��” does not exist"),
    ],
    ids=["closed stdout", "closed stdout for help", "full disk", "closed stdin", "endless stdin", "an entry", "bytes that are no text"],
)  # fmt: skip
def test_streams(argv: list[str], end: str, words: str) -> None:
    status, err = attncli_process(argv, end)
    assert status == 2, err
    one_message(err)
    assert words in err


@pytest.mark.parametrize(
    ("argv", "end"),
    [(LONG, " | head -c1"), (["--help"], " | true"), (["grade", "a1-pronoun", "-", "--format", "csv"], " | head -1")],
)
def test_a_reader_that_has_had_enough_is_no_error(argv: list[str], end: str) -> None:
    if argv[0] == "grade":
        end = """ < <(for i in $(seq 300); do echo '{"student": "s'$i'", "answers": {"A": "1 2"}}'; done)""" + end
    status, err = attncli_process(argv, end)
    assert (status, err) in ((0, ""), (0, "s1\n")), err


def test_output_is_whole_without_buffers() -> None:
    """A pipe takes a part at a time; Python's own unbuffered streams stop after the first."""
    assert attncli_process(LONG, " | head -c1", "1") == (0, "")
    assert attncli_process(LONG, " | { sleep 0.5; test $(wc -c) -gt 500000; }", "1") == (0, "")


def test_closed_standard_output_does_not_matter_with_a_file(files: Path) -> None:
    assert attncli_process([*FORWARD, "-o", str(files / "written.md")], " >&-") == (0, "")
    assert (files / "written.md").stat().st_size


def test_closed_standard_error_is_survived() -> None:
    assert attncli_process(q("x"), " 2>&-") == (2, "")


def test_npz_is_not_for_a_screen() -> None:
    shown = on_terminal(*FORWARD, "--format", "npz")
    assert (shown.status, shown.out) == (2, "attncli: npz is not for a screen. Give a file: -o trace.npz\n")


def test_titles_and_labels_are_shown_as_they_are(files: Path) -> None:
    """Square brackets are no markup, and control characters do not reach the terminal."""
    text = (
        TOML
        + '[labels]\nquery = ["[bold]x[/bold]"]\nkey = ["a\\u001b[31mb", "[/]"]\n[title]\nen = "[red]T[/red]\\u0007"\n'
    )
    (files / "titled.toml").write_text(text)
    for format in ("table", "markdown", "latex", "csv", "html", "json"):
        status, out, err = run("forward", "titled.toml", "--format", format)
        assert (status, err) == (0, ""), format
        assert "\x1b" not in out, format
        assert "\x07" not in out, format
    status, out, err = run("forward", "titled.toml")
    assert "[bold]x[/bold]" in out


def test_python_says_the_same() -> None:
    for inputs, words in (
        ({"Q": np.array([["a"]])}, "inputs.Q: holds text, not real numbers"),
        ({"Q": np.array([[1j]])}, "inputs.Q: holds complex numbers"),
        ({"Q": np.array([[None]], dtype=object)}, "inputs.Q: holds Python objects"),
        ({"Q": np.array([[1.0, np.nan]])}, "inputs.Q: holds NaN at [1,2]"),
        ({"Q": [[1, None]]}, "inputs.Q: row 1, column 2: “null” was given where a number is expected"),
        ({"Q": [[1, object]]}, "inputs.Q: row 1, column 2: “<class 'object'>” is not a number"),
        ({"Q": [[1, float("nan")]]}, "inputs.Q: row 1, column 2: NaN"),
        ({"Q": [[1, 10**5000]]}, "inputs.Q: row 1, column 2: a whole number of more than 400 digits"),
        ({"Q": {1: 2}}, "inputs.Q: "),
        ({"Q": object()}, "inputs.Q: “<object object"),
        ({"Q": [[1, 2], [3]]}, "inputs.Q: Row 2 has 1 entry"),
    ):
        with pytest.raises(attncli.InputError) as caught:
            attncli.problem(inputs=inputs)
        assert words in str(caught.value)
    with pytest.raises(AttnError, match="there is no such file"):
        attncli.load("nowhere.toml")
    with pytest.raises(attncli.ShapeError, match="V is 1×2"):
        attncli.forward(attncli.problem(inputs={"Q": "1 2", "K": "1 0; 0 1", "V": "2 0"}))


@pytest.mark.parametrize("language", ["en", "zh"])
def test_a_message_is_broken_at_words_on_a_terminal_and_is_one_line_in_a_pipe(language: str) -> None:
    words = ("forward", "-Q", "1 2 3", "-K", "1 0; 0 1", "-V", "2 0; 0 4", "--lang", language)
    one_message(piped := run(*words).err)
    shown = on_terminal(*words, columns=40, piped=True).err
    assert all(cell_len(line) <= 40 for line in shown.splitlines()) and shown.count("\n") > 2
    assert shown.replace("\n", "").replace(" ", "") == piped.replace("\n", "").replace(" ", "")
    assert language == "zh" or shown.split() == piped.split()

"""Problem files and sheets with anything in them: a result or one message, never a fault of ours. ATTNCLI_FUZZ=N asks for more of them."""

from __future__ import annotations

import json
import os
import random
from pathlib import Path

import pytest
from running import one_message, run

from attncli.problems import library

pytestmark = pytest.mark.slow

COUNT = int(os.environ.get("ATTNCLI_FUZZ", "200"))
#: Pieces that stand where something else was.
PIECES = (
    "", "[", "]", "{", "}", '"', "\\", "\x00", "\n", "=", "nan", "inf", "-inf", "1e400", "0", "-1", "99999999999999999999", "1/0", "√-1", "？", "１",
    "true", "[[[1]]]", "[]", '""', "null", "[inputs]", "[marking]\npoints = { O = -1 }\n", "causal = 3", "decimals = 99", "\ud7ff", "名", "| ", "; ;",
    "scale = 0", "heads = 0", "eps = -1", "@p.toml", "G_O", "loss = 'sum('", "model = 'gpt'", "answers", "student = 7", "?", "_",
)  # fmt: skip


def spoiled(text: str, rng: random.Random) -> str:
    """The text with a few places written over, taken out, doubled or moved."""
    for _ in range(rng.randint(1, 4)):
        start = rng.randrange(len(text) + 1)
        end = min(len(text), start + rng.choice((0, 1, 1, 3, 20)))
        text = text[:start] + rng.choice((*PIECES, text[start:end] * 2)) + text[end:]
    return text


@pytest.mark.parametrize("part", range(4))
def test_any_problem_file_and_any_sheet(part: int, tmp_path: Path) -> None:
    rng = random.Random(part)
    ids = [id for id in library.ids() if library.path(id).stat().st_size < 5000]
    refused = 0
    for number in range(COUNT // 4):
        text = library.path(rng.choice(ids)).read_text("utf-8")
        path = tmp_path / f"p{number}.toml"
        path.write_text(spoiled(text, rng), "utf-8", "replace")
        status, out, err = run("forward", str(path))
        assert status in (0, 2), (path.read_text("utf-8"), err)
        if status == 2:
            refused += 1
            assert out == ""
            one_message(err)
        assert "fault of attncli" not in err, (path.read_text("utf-8"), err)
        answers = {"A": "0.330 0.670", "scores": "1 2", "O": "0.660 2.680"}
        sheet = spoiled(json.dumps({"student": "ann", "answers": answers}), rng)
        status, out, err = run("grade", "a1-pronoun", "-", "--format", "jsonl", stdin=sheet.encode("utf-8", "replace"))
        assert "fault" not in out + err, (sheet, out, err)
        assert status in (0, 2), (sheet, err)
    assert 0 < refused < COUNT // 4

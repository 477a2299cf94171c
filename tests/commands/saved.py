"""A small training in a file, for the commands that need one. It is made once, by the code itself."""

from __future__ import annotations

import functools
import tempfile
from pathlib import Path

#: Stands for its path among the words of a command.
SAVED = "SAVED.npz"
_folder = tempfile.TemporaryDirectory(prefix="attncli-tests-")


@functools.cache
def path() -> Path:
    """Where the file is."""
    from attncli.training.saved import as_bytes
    from attncli.training.spec import Spec, begin
    from attncli.training.trainer import Trainer

    trainer = Trainer(begin(Spec(tuple("我喜欢数学"), "characters", 4, heads=2), "我喜欢数学"))
    for _ in trainer.run(60):
        pass
    file = Path(_folder.name) / SAVED
    file.write_bytes(as_bytes(trainer.state))
    return file


def with_file(words: tuple[str, ...]) -> tuple[str, ...]:
    """The words with the file's path in the place of its name."""
    return tuple(str(path()) if word == SAVED else word for word in words)

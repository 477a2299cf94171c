"""The READMEs held against what the commands print.

    python tests/readme/outputs.py             # exit status 1 and a difference where they do not agree
    python tests/readme/outputs.py --update    # write the outputs anew

Every ```console block is run: `$ command`, then its output (and messages) line for line. A line with nothing but … stands
for lines left out. Every ```pycon block is a Python session. A ```toml block that begins with `# name.toml` is
written to that file first. All blocks of one README share one empty folder, in order.
"""

from __future__ import annotations

import difflib
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
#: Each README and the locale its reader has.
READMES = {"README.md": "en_US.UTF-8", "README.zh.md": "zh_CN.UTF-8"}
LEFT_OUT = "…"

_BLOCK = re.compile(r"^```(console|pycon|toml)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_FILE = re.compile(r"# ([\w-]+\.toml)\n")
#: Runs the sources it is given as one session and says what each printed.
_SESSION = """
import contextlib, io, json, sys
names, printed = {"__name__": "__main__"}, []
for source in json.load(sys.stdin):
    with contextlib.redirect_stdout(io.StringIO()) as out:
        exec(compile(source, "README", "single"), names)
    printed.append(out.getvalue())
json.dump(printed, sys.stdout)
"""


@dataclass(frozen=True)
class Example:
    """Something to type, with its prompts, and what it prints."""

    typed: str
    shown: str


def environment(locale: str, home: Path) -> dict[str, str]:
    """A plain 80-character screen without colour, whatever the caller's is; attncli is the one of this checkout."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)])
    found = {"PATH": path, "PYTHONPATH": str(ROOT), "PYTHONUTF8": "1"}
    return {**found, "HOME": str(home), "LANG": locale, "COLUMNS": "80", "TERM": "dumb"}


def shell(command: str, folder: Path, locale: str) -> str:
    """What a command prints, messages included."""
    done = subprocess.run(
        ["bash", "-c", command],
        cwd=folder,
        env=environment(locale, folder),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        check=False,
        timeout=120,
    )
    return done.stdout.decode()


def session(sources: list[str], folder: Path, locale: str) -> list[str]:
    """What each piece of a Python session prints."""
    done = subprocess.run(
        [sys.executable, "-c", _SESSION],
        cwd=folder,
        env=environment(locale, folder),
        input=json.dumps(sources),
        capture_output=True,
        encoding="utf-8",
        check=False,
        timeout=120,
    )
    if done.returncode:
        raise SystemExit(f"A Python session of the README fails:\n{done.stderr}")
    printed: list[str] = json.loads(done.stdout)
    return printed


def examples(body: str, prompts: tuple[str, ...]) -> Iterator[Example]:
    """What is typed after the prompts of a block, and the lines that follow each."""
    typed: list[str] = []
    shown: list[str] = []
    for line in body.splitlines(keepends=True):
        if line.startswith(prompts[0]) or (not shown and typed and line.startswith(prompts[1:])):
            if line.startswith(prompts[0]) and typed:
                yield Example("".join(typed), "".join(shown))
                typed, shown = [], []
            typed.append(line)
        else:
            shown.append(line)
    if typed:
        yield Example("".join(typed), "".join(shown))


def agrees(shown: str, printed: str) -> bool:
    """Whether the printed lines are those shown, an … standing for any lines.

    What rounding leaves over, like 4.8e-12, is a little different on every processor: only its form is compared.
    """
    pieces = [re.escape(piece) for piece in re.split(rf"^{LEFT_OUT}\n", shown, flags=re.MULTILINE)]
    pattern = re.sub(r"\d\\\.\de\\-\d\d", lambda _: r"\d\.\de-\d\d", r"(?:.*\n)*?".join(pieces))
    return re.fullmatch(pattern, printed) is not None


def refreshed(shown: str, printed: str) -> str:
    """The output anew: untouched where it agrees, and with the same lines left out as far as that can be told."""
    if agrees(shown, printed):
        return shown
    pieces = [piece.splitlines(keepends=True) for piece in re.split(rf"^{LEFT_OUT}\n", shown, flags=re.MULTILINE)]
    if len(pieces) == 1:
        return printed
    lines = printed.splitlines(keepends=True)
    kept: list[str] = []
    at = 0
    for piece in pieces:
        found = _likest(piece, lines, at)
        kept += [LEFT_OUT + "\n"] * (found > at) + lines[found : found + len(piece)]
        at = found + len(piece)
    return "".join(kept + [LEFT_OUT + "\n"] * (at < len(lines)))


def _likest(wanted: list[str], lines: list[str], start: int) -> int:
    """Where the lines most like the wanted ones begin."""
    if not wanted:
        return start
    return max(
        range(start, max(start, len(lines) - len(wanted)) + 1),
        key=lambda at: difflib.SequenceMatcher(None, "".join(wanted), "".join(lines[at : at + len(wanted)])).ratio(),
    )


def replayed(text: str, locale: str) -> str:
    """A README with every output as it is printed now (untouched where it agrees)."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)

        def block(found: re.Match[str]) -> str:
            kind, body = found.groups()
            if kind == "toml":
                file = _FILE.match(body)
                if file:
                    (folder / file[1]).write_text(body, encoding="utf-8")
                return found[0]
            return f"```{kind}\n{_RUN[kind](body, folder, locale)}```"

        return _BLOCK.sub(block, text)


def _console(body: str, folder: Path, locale: str) -> str:
    parts = []
    for example in examples(body, ("$ ", "> ")):
        command = "".join(line[2:] for line in example.typed.splitlines(keepends=True))
        parts.append(example.typed + refreshed(example.shown, shell(command, folder, locale)))
    return "".join(parts)


def _pycon(body: str, folder: Path, locale: str) -> str:
    pieces = list(examples(body, (">>> ", "... ", "...\n")))
    sources = ["".join(line[4:] or "\n" for line in piece.typed.splitlines(keepends=True)) for piece in pieces]
    printed = session(sources, folder, locale)
    return "".join(piece.typed + refreshed(piece.shown, out) for piece, out in zip(pieces, printed, strict=True))


_RUN: dict[str, Callable[[str, Path, str], str]] = {"console": _console, "pycon": _pycon}


def difference(name: str) -> str:
    """How a README differs from what its commands print; nothing where it agrees."""
    text = (ROOT / name).read_text(encoding="utf-8")
    new = replayed(text, READMES[name])
    return "".join(
        difflib.unified_diff(text.splitlines(keepends=True), new.splitlines(keepends=True), name, "as printed now")
    )


def main(words: list[str]) -> int:
    """Check the READMEs, or update them."""
    status = 0
    for name, locale in READMES.items():
        if "--update" in words:
            path = ROOT / name
            path.write_text(replayed(path.read_text(encoding="utf-8"), locale), encoding="utf-8")
        found = difference(name)
        print(found or f"{name}: every output is what the commands print")
        status |= bool(found)
    return status


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))

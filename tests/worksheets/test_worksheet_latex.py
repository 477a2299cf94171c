"""The LaTeX of sheets and keys: read strictly, sign by sign; and, where there is a TeX, compiled."""

import re
import shutil
import subprocess

import pytest

from attncli.cli.main import main

#: Signs that LaTeX's fonts have beside ASCII, in text.
LATIN = set("’‘“”…–—ä é".replace(" ", ""))


def written(folder, name, lang, *more):
    place = folder / f"{name}-{lang}{''.join(more)}.tex"
    assert main(["worksheet", name, "--lang", lang, *more, "-o", str(place)]) == 0
    return place


def faults(tex):
    """What would stop a compiler, or print something else than was meant."""
    body = re.sub(r"(?<!\\)%.*", "", tex)
    found = []
    stack = []
    for token in re.finditer(r"\\(begin|end)\{(\w+\*?)\}|\\.|[{}$&#_^]|[^\x00-\x7f]", body, re.DOTALL):
        sign = token[0]
        maths = "$" in stack
        if token[1] == "begin":
            stack.append(token[2])
        elif sign in "{}" or token[1] == "end":
            opened = token[2] if token[1] else "{"
            if sign == "{":
                stack.append("{")
            elif not stack or stack.pop() != opened:
                found.append(f"{sign} closes nothing, at …{body[max(0, token.start() - 30) : token.end()]}")
        elif sign == "$":
            if stack and stack[-1] == "$":
                stack.pop()
            elif maths:
                found.append("$ inside of braces")
            else:
                stack.append("$")
        elif sign == "#" or (sign in "_^" and not maths) or (sign == "&" and "tabular" not in stack):
            found.append(f"a bare {sign} at …{body[max(0, token.start() - 30) : token.end()]}")
        elif not sign.isascii() and "ctex" not in tex and sign not in LATIN:
            found.append(f"{sign} without a font, at …{body[max(0, token.start() - 30) : token.end()]}")
    found += [f"{one} is never closed" for one in stack]
    # In every table each row has as many cells as there are columns.
    for spec, rows in re.findall(r"\\begin\{tabular\}\{([r|]+)\}(.*?)\\end\{tabular\}", body, re.DOTALL):
        for row in rows.split(r"\\ \hline")[:-1]:
            if len(re.findall(r"(?<!\\)&", row)) != spec.count("r") - 1:
                found.append(f"{spec}: {row.strip()}")
    return found


@pytest.mark.parametrize("lang", ["en", "zh"])
@pytest.mark.parametrize("name", ["embedding", "layer-norm", "softmax-backward", "a1", "d1", "b6", "e3"])
def test_sheets_and_keys_are_sound(name, lang, tmp_path):
    for more in ((), ("--key",)):
        tex = written(tmp_path, name, lang, *more).read_text(encoding="utf-8")
        assert tex.count("\\begin{tabular}") > 3 and faults(tex) == []


def test_the_check_sees_what_is_wrong():
    assert faults("a {b") and faults("a_1") and faults("$a") and faults("5 & 6") and faults("γ") and faults("a } b")
    assert faults("\\begin{tabular}{r|r|}\n1 \\\\ \\hline\n\\end{tabular}") and faults("\\begin{itemize}")
    assert faults("a\\_b $a_{1}$ 100\\% \\begin{tabular}{r|r|}\n1 & 2 \\\\ \\hline\n\\end{tabular}") == []


@pytest.mark.slow
@pytest.mark.parametrize(("lang", "engine"), [("en", "pdflatex"), ("zh", "xelatex")])
def test_sheets_compile(lang, engine, tmp_path):
    if shutil.which(engine) is None:
        pytest.skip(f"needs {engine}: apt-get install texlive-latex-base texlive-xetex texlive-lang-chinese")
    for name in ("attention", "layer-norm", "softmax-backward", "embedding"):
        place = written(tmp_path, name, lang, "--key")
        words = [engine, "-interaction=nonstopmode", "-halt-on-error", place.name]
        done = subprocess.run(words, cwd=tmp_path, stdin=subprocess.DEVNULL, capture_output=True, timeout=120)
        assert done.returncode == 0, done.stdout[-1500:].decode("utf-8", "replace")
        assert place.with_suffix(".pdf").stat().st_size > 5000

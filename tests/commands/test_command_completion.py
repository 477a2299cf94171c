"""Shell completion, asked as the shells ask it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from harness import environment, once

CASES = {
    "attncli ": {"forward", "backward", "why", "examples", "models"},
    "attncli for": {"forward"},
    "attncli forward --step s": {"scores", "scaled", "shifted"},
    "attncli forward a9-causal-mask --step m": {"masked"},
    "attncli backward b6-full-backward --step G_W_": {"G_W_Q", "G_W_K", "G_W_V"},
    "attncli forward --model se": {"self_attention"},
    "attncli models e": {"embedded_attention", "embedding"},
    "attncli examples show b": {"b1-output", "b2-upstream", "b6-full-backward"},
    "attncli examples run a11": {"a11-causal-self-attention"},
    "attncli forward a1": {"a1-pronoun", "a10-mask-before-maximum", "a11-causal-self-attention"},
    "attncli why a1-pronoun sc": {"scores", "scaled"},
    "attncli forward --format ": {"table", "json", "markdown", "latex", "csv", "npz", "html", "svg", "xlsx"},
    "attncli forward --cau": {"--causal"},
}


def bash(line: str) -> set[str]:
    """What bash is offered for a line."""
    done = once(_ATTNCLI_COMPLETE="complete_bash", COMP_WORDS=line, COMP_CWORD=len(line.split(" ")) - 1)
    assert done.status == 0 and not done.err
    return set(done.out.split())


def zsh(line: str) -> set[str]:
    """What zsh is offered for a line."""
    done = once(_ATTNCLI_COMPLETE="complete_zsh", _TYPER_COMPLETE_ARGS=line)
    assert done.status == 0 and not done.err
    return set(re.findall(r'^(?:_arguments .*\(\()?"([^"]+)"', done.out, re.MULTILINE))


@pytest.mark.parametrize("line", CASES)
@pytest.mark.parametrize("shell", [bash, zsh])
def test_offers(shell, line: str) -> None:  # type: ignore[no-untyped-def]
    offered = shell(line)
    assert CASES[line] <= offered
    last = line.rpartition(" ")[2]
    assert all(word.startswith(last) for word in offered)


@pytest.mark.parametrize("line", ["attncli forward nonsense.toml --step ", "attncli forward no-such-example --step O"])
def test_a_problem_that_cannot_be_read_is_no_obstacle(line: str) -> None:
    assert "O" in bash(line)


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_script(shell: str) -> None:
    done = once("--show-completion", shell, _TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION=1)
    assert done.status == 0
    assert "_ATTNCLI_COMPLETE=complete_" + shell in done.out


def test_bash_takes_the_script() -> None:
    """As in a start-up file of bash: the shell is found out, its script read, and a word completed."""
    ask = (
        'eval "$(attncli --show-completion)";'
        " COMP_WORDS=(attncli forward --step sco); COMP_CWORD=3; _attncli_completion attncli;"
        ' echo "${COMPREPLY[@]}"'
    )
    path = os.pathsep.join([str(Path(sys.executable).parent), environment()["PATH"]])
    done = subprocess.run(["bash", "-c", ask], env=environment(PATH=path), capture_output=True, timeout=30, check=False)
    assert (done.stdout.decode().strip(), done.stderr) == ("scores", b"")

"""A training that is stopped: it shows and keeps what it has learnt, and can go on as if nothing had been."""

from __future__ import annotations

import json
import os
import pty
import re
import signal
import subprocess
from pathlib import Path

import numpy as np
import pytest
from harness import command, environment, pieces, run

FOREVER = ("train", "abcab", "--steps", "1000000")


def stopped(*words: str, by: signal.Signals | None) -> tuple[int, bytes, bytes]:
    """Exit status, standard output, and what the terminal was sent on standard error; None: Ctrl-C is typed.

    The live picture on that terminal says when the training is under way.
    """
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        command(*words), env=environment(), stdin=theirs, stdout=subprocess.PIPE, stderr=theirs, start_new_session=True,
        preexec_fn=_with_terminal if by is None else _as_usual,
    )  # fmt: skip
    os.close(theirs)
    screen, asked = bytearray(), False
    for piece in pieces(ours):
        screen += piece
        if not asked and re.search(rb"loss \d", screen):
            asked = True
            if by is None:
                os.write(ours, b"\x03")
            else:
                process.send_signal(by)
    os.close(ours)
    try:
        out, _ = process.communicate(timeout=60)
    finally:
        process.kill()
    assert asked
    return process.returncode, out, bytes(screen)


def words(screen: bytes) -> str:
    """What stands there, wherever its lines break."""
    return " ".join(screen.decode().split())


def _as_usual() -> None:
    """Signals count, though these tests may have been started where they do not, as under nohup."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)


def _with_terminal() -> None:
    """The terminal on standard input is that of the process, so that what is typed there reaches it."""
    import fcntl
    import termios

    _as_usual()
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


@pytest.mark.parametrize(
    ("by", "status"), [(None, 130), (signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)]
)
def test_what_was_learnt_is_shown(by: signal.Signals | None, status: int) -> None:
    found, out, screen = stopped(*FOREVER, "--format", "json", by=by)
    assert found == status
    settings = json.loads(out)["settings"]
    assert 0 < settings["steps"] == len(settings["losses"]) < 1_000_000
    said = words(screen).rpartition("attncli: ")[2]
    assert f"stopped after step {settings['steps']} of 1000000: this is what it had learned" in said
    assert screen.rindex(b"\x1b[?25h") > screen.rindex(b"\x1b[?25l")  # the cursor is there again
    assert b"Traceback" not in screen


def test_a_stopped_training_goes_on_as_if_nothing_had_been(tmp_path: Path) -> None:
    saved, both, whole = (str(tmp_path / name) for name in ("stopped.npz", "both.npz", "whole.npz"))
    status, _, screen = stopped(*FOREVER, "--save", saved, by=signal.SIGTERM)
    assert status == 143
    with np.load(saved, allow_pickle=False) as arrays:
        steps = len(arrays["losses"])
    assert f"--load {saved} --steps {1_000_000 - steps}" in words(screen)
    assert run("train", "--load", saved, "--steps", "7", "--save", both).status == 0
    assert run("train", "abcab", "--steps", str(steps + 7), "--save", whole).status == 0
    assert Path(both).read_bytes() == Path(whole).read_bytes()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["both.npz", "stopped.npz", "whole.npz"]


def test_a_step_that_was_not_reached_is_not_shown() -> None:
    status, out, screen = stopped("train", "abcab", "--step", "900000", by=signal.SIGINT)
    assert (status, out) == (130, b"")
    assert "so there is no step 900000 to show" in words(screen)


def test_what_is_overlooked_stays_overlooked() -> None:
    """As under nohup: a hang-up that the caller has turned off does not end the training."""
    from attncli.training.trainer import stopping

    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with stopping() as stop:
            os.kill(os.getpid(), signal.SIGHUP)
            assert not stop.asked
        assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, before)


def test_the_second_time_it_ends_at_once() -> None:
    from attncli.training.trainer import stopping

    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt), stopping() as stop:
            os.kill(os.getpid(), signal.SIGINT)
            assert (stop.asked, stop.status) == (True, 130)
            os.kill(os.getpid(), signal.SIGINT)
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    finally:
        signal.signal(signal.SIGINT, before)

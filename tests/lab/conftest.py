"""Whole commands are typed as in tests/commands."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1] / "commands"))

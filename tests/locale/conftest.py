"""Commands that need a saved training find it as tests/commands does."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1] / "commands"))

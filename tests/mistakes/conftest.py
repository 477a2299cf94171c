"""Mistakes are tried in whole models, on the cases of tests/models."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1] / "models"))

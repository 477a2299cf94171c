"""Gradients are checked as those of the ops are: by random projections."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1] / "ops"))

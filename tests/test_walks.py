"""The tour of CONTRIBUTING.md goes where the commands go."""

from __future__ import annotations

import pytest
from walks import WALKS, passed, told


@pytest.mark.parametrize("heading", WALKS)
def test_every_file_of_the_tour_lies_on_the_way(heading: str) -> None:
    files = told(heading)
    assert 8 <= len(files) <= 14
    assert not set(files) - set(passed(WALKS[heading]))

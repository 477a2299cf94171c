"""Views to render, and a stub for the Chinese catalogue so that these tests hold whatever it says."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from rendering import HOSTILE, LAYOUTS, PROBLEMS, ZH, make_view

import attncli.locale
from attncli.core.message import ENGLISH
from attncli.render.view import View


@pytest.fixture(autouse=True)
def stub_chinese(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attncli.locale, "language", lambda code: ZH if code == "zh" else ENGLISH)


@pytest.fixture(params=list(PROBLEMS))
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(params=LAYOUTS)
def shown(request: pytest.FixtureRequest, name: str) -> View:
    """Every problem in both layouts, with all arithmetic."""
    return make_view(name, layout=request.param, expand=True)


@pytest.fixture(params=LAYOUTS)
def shown_zh(request: pytest.FixtureRequest, name: str) -> View:
    return make_view(name, ZH, layout=request.param)


@pytest.fixture
def seen() -> Callable[..., View]:
    """Makes the view of one problem by its name."""
    return make_view


@pytest.fixture
def hostile_names() -> tuple[str, ...]:
    return HOSTILE

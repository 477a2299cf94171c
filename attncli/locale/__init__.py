"""Languages: English in the code, others in gettext catalogues beside this file."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from attncli.core.message import ENGLISH, Language, Message, unknown

CODES = ("en", "zh")


def language(code: str) -> Language:
    """The language of this code.

    Raises
    ------
    InputError
        It is not one of `CODES`.
    """
    if code == "en":
        return ENGLISH
    if code not in CODES:
        raise unknown(Message("The language"), code, CODES)
    import gettext

    with (Path(__file__).parent / code / "LC_MESSAGES" / "attncli.mo").open("rb") as file:
        return Language(code, gettext.GNUTranslations(file).gettext)


def in_every_language(message: Message) -> dict[str, str]:
    """The sentence in each language, as files give a title."""
    return {code: message.text(language(code)) for code in CODES}


def from_environment(environment: Mapping[str, str]) -> str:
    """The language of ATTNCLI_LANG, else of the locale, else English."""
    wished = environment.get("ATTNCLI_LANG", "").strip()
    if wished:
        return wished
    for name in ("LC_ALL", "LC_MESSAGES", "LANG"):
        value = environment.get(name, "")
        if value:
            return "zh" if value.lower().startswith("zh") else "en"
    return "en"

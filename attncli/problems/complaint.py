"""What pydantic finds wrong in a file, said in our words and languages: the key, what stands there, what was expected."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from pydantic import ValidationError

from attncli.core.message import N_, InputError, Message, unknown
from attncli.problems.matrix_text import brief

_EXPECTED = {
    "string_type": N_("text in quotes"),
    "string_unicode": N_("text in quotes"),
    "int_type": N_("a whole number"),
    "int_parsing": N_("a whole number"),
    "int_from_float": N_("a whole number"),
    "float_type": N_("a number"),
    "float_parsing": N_("a number"),
    "bool_type": N_("true or false"),
    "dict_type": N_("a table of keys"),
    "model_type": N_("a table of keys"),
    "list_type": N_("a list in [ ]"),
    "too_short": N_("a list of 1 to 3 numbers"),
    "too_long": N_("a list of 1 to 3 numbers"),
    "finite_number": N_("a finite number"),
}


def complaint(
    error: ValidationError,
    root: str,
    known: Callable[[list[str]], list[str]],
    expected: Mapping[str, str] | None = None,
) -> InputError:
    """The error for pydantic's first complaint.

    Parameters
    ----------
    root : what the file as a whole is called
    known : the keys that may stand where an unknown one was found, from the path to it
    expected : what was expected, by kind of complaint, where it is not what it usually is
    """
    errors = error.errors()
    # A misspelt key is also a missing one; what stands there says more than what does not.
    found = next((each for each in errors if each["type"] == "extra_forbidden"), errors[0])
    path = [str(part) for part in found["loc"] if part != "[key]"]
    if path[:1] == ["decimals"] and path[-1] == "default":
        path.pop()
    key = ".".join(path) or root
    kind, context = found["type"], found.get("ctx", {})
    if kind == "extra_forbidden":
        return unknown(Message(N_("The key")), key, known(path))
    if kind == "missing":
        return InputError("the key “{key}” is missing. Add it.", key=key)
    value = found.get("input")
    given = brief(value)
    if kind == "literal_error":
        return InputError(
            "{key}: “{given}” is not allowed here. Write {choices}.",
            key=key,
            given=given,
            choices=context["expected"].replace(" or ", ", "),
        )
    if kind in ("greater_than_equal", "less_than_equal", "greater_than"):
        return InputError(
            "{key}: {given} is out of range: it must be {relation} {bound}.",
            key=key,
            given=given,
            relation={"greater_than_equal": "≥", "less_than_equal": "≤", "greater_than": ">"}[kind],
            bound=f"{context.get('ge', context.get('le', context.get('gt'))):g}",
        )
    if kind == "string_pattern_mismatch":
        return InputError(
            "{key}: “{given}” does not work as a name. Use letters, digits, “-”, “_” and “.”.", key=key, given=given
        )
    words = {**_EXPECTED, **(expected or {})}.get(kind)
    if words is None:
        return InputError("{key}: “{given}” is not allowed here.", key=key, given=given)
    return InputError("{key}: found “{given}”, expected {expected}.", key=key, given=given, expected=Message(words))

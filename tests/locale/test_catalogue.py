"""The Chinese catalogue is complete, and nothing a learner reads escapes it."""

import ast
import re
import string
from collections.abc import Iterator

import catalogue
import pytest
from babel.messages.catalog import Catalog

RUN_IT = "run python tests/locale/catalogue.py"


@pytest.fixture(scope="module", params=catalogue.LANGUAGES)
def language(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def written(language: str) -> Catalog:
    return catalogue.read(language)


def messages(catalog: Catalog) -> dict[str, str]:
    return {str(message.id): str(message.string) for message in catalog if message.id}


def test_every_text_is_translated(written: Catalog) -> None:
    assert [text for text, translation in messages(written).items() if not translation] == []
    assert [message.id for message in written if message.id and message.fuzzy] == []


def test_extraction_finds_nothing_new_and_nothing_gone(written: Catalog) -> None:
    assert set(catalogue.extracted()) == set(messages(written)), RUN_IT


def test_po_is_as_the_tool_writes_it(language: str) -> None:
    assert catalogue.po_path(language).read_bytes() == catalogue.po_bytes(catalogue.updated(language)), RUN_IT


def test_mo_is_the_po_compiled(language: str) -> None:
    compiled = catalogue.po_path(language).with_suffix(".mo").read_bytes()
    assert compiled == catalogue.mo_bytes(catalogue.updated(language)), RUN_IT
    assert compiled == catalogue.mo_bytes(catalogue.updated(language))
    assert b"Date" not in compiled and b"Babel" not in compiled


def fields(template: str) -> set[str]:
    return {name for _, name, _, _ in string.Formatter().parse(template) if name is not None}


def test_fields_are_the_same_on_both_sides(written: Catalog) -> None:
    differing = {
        text: translation
        for text, translation in messages(written).items()
        if fields(text) != fields(translation) or text.count("{{") != translation.count("{{")
    }
    assert differing == {}


def test_chinese_has_chinese_signs(written: Catalog) -> None:
    """No English comma, semicolon, colon or full stop after a Chinese character, no space before a Chinese sign."""
    wrong = re.compile(
        r"[\u4e00-\u9fff][,;:?!]|[\u4e00-\u9fff]\.(?!\.)|\s[，。；：！？、）]|[，。；：！？、（][ ](?!$)"
    )
    assert [text for text in messages(written).values() if wrong.search(text)] == []


def test_chinese_is_chinese(written: Catalog) -> None:
    """Only texts without any English word stay without a Chinese character."""
    same = [
        text
        for text, translation in messages(written).items()
        if not re.search(r"[\u4e00-\u9fff]", translation) and re.search(r"[a-z]", re.sub(r"{\w+}", "", text))
    ]
    assert same == ["published_how.{step}:"]


#: Words of the subject, and what they are called in Chinese: whoever says one says the other.
SUBJECT = {
    "transpos": "转置",
    "mask": "掩码",
    "softmax": "softmax",
    r"\btokens?\b": "token",
    r"\bquer(?:y|ies)\b": "查询",
    r"(?<!answer )\bkeys?\b": "键",
    "gradient": "梯度",
    "variance": "方差",
    "diagonal": "对角线",
    "residual": "残差",
    r"\bbias": "偏置",
    r"\bcosine": "余弦",
    r"\bsin(?:e|usoid)": "正弦",
}
#: What is typed or filled in, where these words are names.
NAMES = re.compile(r"{\w+}|--?[a-zA-Z][\w-]*(?: \w+)?|\w+\.[\w{]+|\[\w+\]|\w+ = |“[^”]*”|^gradient\b")
#: Numbers and signs, which are the same in both languages.
SIGNS = re.compile(r"\d+(?:\.\d+)?|[A-Z]_[A-Za-z]+|d_k|e\^|[√∞εγβθη²ᵀ+×·/]")


def test_words_of_the_subject_are_on_both_sides(written: Catalog) -> None:
    """A translation that got to the wrong text, most likely one that begins alike, says something else."""
    differing = [
        (english, text, translation)
        for text, translation in messages(written).items()
        for english, chinese in SUBJECT.items()
        if bool(re.search(english, NAMES.sub("", text), re.IGNORECASE)) != (chinese in NAMES.sub("", translation))
    ]
    assert differing == []


def test_numbers_and_signs_are_kept(written: Catalog) -> None:
    differing = {
        text: missing
        for text, translation in messages(written).items()
        if (missing := set(SIGNS.findall(re.sub(r"{\w+}", "", text))) - set(SIGNS.findall(translation)))
    }
    assert differing == {}


def test_options_and_commands_are_kept(written: Catalog) -> None:
    """What is to be typed is the same in both languages."""
    commands = r"attncli (?:forward|backward|why|models|examples (?:list|show|run|verify))\b"
    typed = re.compile(rf"(?<![\w-])--?[a-zA-Z][\w-]*|{commands}|@\{{?\w+")
    for text, translation in messages(written).items():
        assert [word for word in typed.findall(text) if word not in translation] == [], text


@pytest.mark.parametrize("path", catalogue.files(), ids=lambda path: path.relative_to(catalogue.CODE).as_posix())
def test_templates_are_written_out(path: catalogue.Path) -> None:
    """A template put together at run time (an f-string, a sum) cannot be found in a catalogue; one that is found needs no N_."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for node in catalogue.templates(tree, methods=False):
        where = f"{path.name}:{node.lineno}"
        assert not isinstance(node, (ast.JoinedStr, ast.BinOp)), where
        assert not (isinstance(node, ast.Call) and ast.unparse(node.func) == "N_"), where


#: Words that are not for learners: styles of Rich, markup, regular expressions, and what is typed as it stands.
NOT_TEXT = re.compile(
    r"^(bold|on|white|italic|grey\d+)( (bold|on|white|red|cyan|magenta|dim|underline|italic|grey\d+|\w*blue\d?))+$"
    r"|^on grey23$|</?\w+[ >]|^ *attncli [a-z]|^\[PROBLEM\] STEP|^No such command|^Got unexpected|does not take a value"
    r"|^cut off$"  # `how` of a mark, a word of the JSON format
    r"|^Application Support$|^step-title formula$|^% Put this into|^'Fira Code'"
)
WORDS = re.compile(r"[A-Za-z]{2,} [A-Za-z]{2,}")
#: Errors for programmers, and for the entry point that says them in its own words.
INTERNAL = {"ValueError", "TypeError", "AttributeError", "AssertionError", "OSError", "KeyError", "NotImplementedError"}


def not_shown(tree: ast.AST) -> Iterator[ast.AST]:
    """Docstrings, what is said in errors for programmers, and what is typed as it stands."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            yield node.value
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Name)
            and (node.func.id in INTERNAL or node.func.id == "warn")
        ):
            yield from ast.walk(node)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "Word":
            yield node.args[0]  # how an option is typed


@pytest.mark.parametrize("path", catalogue.files(), ids=lambda path: path.relative_to(catalogue.CODE).as_posix())
def test_no_sentence_escapes(path: catalogue.Path) -> None:
    """Every string with two words in a row is a template, or known not to be read by learners."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    known = set(catalogue.extracted())
    ignored = {id(node) for node in not_shown(tree)}
    escaped = [
        f"{path.name}:{node.lineno}: {node.value[:80]}"
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant)
        and isinstance(node.value, str)
        and id(node) not in ignored
        and node.value not in known
        and WORDS.search(node.value)
        and not NOT_TEXT.search(node.value)
    ]
    assert escaped == []


def test_every_kind_of_error_is_extracted() -> None:
    assert {"AttnError", "InputError", "ShapeError", "LimitError", "EntryError"} <= catalogue.functions()

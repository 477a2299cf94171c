"""Skills, the kinds of lines that a person learns to write; how a learner stands with each, replayed from the log; and what is
told of it: to the learner, and of a class."""

from __future__ import annotations

import csv
import io
import json
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain, groupby
from pathlib import Path

from attncli.core.graph import Graph, Step, part_of
from attncli.core.message import N_, Message
from attncli.core.outputs import spreadsheet_text
from attncli.core.record import Record
from attncli.core.report import Column, Report, Table
from attncli.mistakes import CATALOGUE
from attncli.practice.log import NO_TRY, RIGHT, LogEntry, read

#: What each skill is called, in the order of the curriculum.
SKILLS: Mapping[str, str] = {
    "dot-products": N_("dot products"),
    "scale": N_("scaling by √d_k"),
    "mask": N_("masks"),
    "softmax": N_("softmax, row by row"),
    "weighted-average": N_("weighted averages"),
    "loss": N_("losses"),
    "product-gradient": N_("gradients of a product"),
    "softmax-gradient": N_("the way back through softmax"),
    "scale-gradient": N_("the way back through the scale"),
    "paths": N_("sums over paths"),
    "look-up": N_("looking up tokens"),
    "look-up-gradient": N_("gradients of the embedding table"),
    "update": N_("steps of learning"),
    "heads": N_("heads"),
    "positions": N_("positions"),
    "norm": N_("normalisation"),
    "norm-gradient": N_("the way back through normalisation"),
    "feed-forward": N_("feed-forward layers"),
    "other": N_("other lines"),
}

_OPS: Mapping[str, str] = {
    "scale": "scale", "softcap": "scale", "mask": "mask", "row_max": "softmax", "subtract": "softmax", "exp": "softmax",
    "row_sum": "softmax", "divide": "softmax", "encode": "look-up", "look_up": "look-up", "split_heads": "heads",
    "merge_heads": "heads", "repeat_kv": "heads", "to_heads": "heads", "head_mean": "heads", "sinusoid": "positions",
    "angle": "positions", "rotate": "positions", "add_positions": "positions", "row_mean": "norm", "centre": "norm",
    "row_mean_square": "norm", "root_eps": "norm", "standardise": "norm", "scale_shift": "norm", "activation": "feed-forward",
    "affine": "feed-forward", "residual": "paths", "weighted_sum": "loss", "weighted_total": "loss", "log_loss": "loss",
    "pick": "loss", "negative_log": "loss", "average": "loss", "logarithm": "loss", "square_sum": "loss", "mean_square": "loss",
}  # fmt: skip
_BACK: Mapping[str, str] = {
    "product": "product-gradient", "scatter_add": "look-up-gradient", "sum_paths": "paths", "scale": "scale-gradient",
    "split_heads": "heads", "merge_heads": "heads", "sum_kv_groups": "heads", "activation_slope": "feed-forward",
    "class_error": "loss", "log_slope": "loss",
}  # fmt: skip


def skill_of(graph: Graph, line: str) -> str:
    """The skill that a line of a calculation takes."""
    step = graph.steps[line]
    if step.phase == "update":
        return "update"
    if step.phase == "backward":
        return _on_the_way_back(graph, step)
    if step.op.name == "product":
        return "weighted-average" if _is_weights(graph, step.inputs[0]) else "dot-products"
    return _OPS.get(step.op.name, "other")


def _on_the_way_back(graph: Graph, step: Step) -> str:
    part = part_of(step.id)
    around = [other for other in graph.steps.values() if part_of(other.id) == part and other.phase == "forward"]
    if step.op.name != "product" and any(other.op.name == "standardise" for other in around):
        return "norm-gradient"
    if step.op.name in _BACK:
        return _BACK[step.op.name]
    return "softmax-gradient" if any(other.op.name == "exp" for other in around) else "other"


def _is_weights(graph: Graph, operand: str) -> bool:
    step = graph.steps.get(operand)
    return operand == "A" if step is None else step.is_attention


#: The stage at which every line is asked for.
LAST_STAGE = 4


def asked_at(graph: Graph, asked: Sequence[str], stage: int) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """What a stage asks, and what it shows; of a group of which the end is asked, the lines inside are neither.

    Stage 1 shows everything but the last line; stage 2 asks for half of the groups, from the end, stage 3 for three quarters;
    stage 4 asks for everything. Lines of one skill that follow one another are a group: softmax is one thing to do.
    """
    if stage >= LAST_STAGE:
        return tuple(asked), ()
    groups = [list(lines) for _, lines in groupby(asked, key=lambda line: skill_of(graph, line))]
    count = 1 if stage == 1 else -(-len(groups) * stage // LAST_STAGE)
    return tuple(lines[-1] for lines in groups[-count:]), tuple(chain.from_iterable(groups[:-count]))


def stage_of(graph: Graph, asked: Sequence[str], line: str) -> int:
    """The first stage that asks for a line."""
    return next((stage for stage in range(1, LAST_STAGE) if line in asked_at(graph, asked, stage)[0]), LAST_STAGE)


# How a learner stands.

#: Days after which a skill comes again, by box.
BOXES = (0, 1, 2, 4, 8, 16, 32)
DAY = 86400.0
#: Rights in a row after a mistake that has a name; after any other failure one is enough.
_AFTER_A_MISTAKE = 3


class SkillState:
    """How a learner stands with one skill.

    Attributes
    ----------
    box : its box; `due`: when it is to come again, in seconds
    open : rights in a row, at the first try and without help, that are still needed after something went wrong
    mistakes : what went wrong last, by name; `failed`: the entry of it
    """

    def __init__(self) -> None:
        self.box = 0
        self.due = 0.0
        self.open = 0
        self.mistakes: tuple[str, ...] = ()
        self.failed: LogEntry | None = None
        self.tries = self.clean = self.wrong = self.helped = self.shown = 0
        self.last = 0.0

    def add(self, entry: LogEntry) -> None:
        """Take one more entry into account."""
        self.tries += entry.verdict not in NO_TRY
        self.last = entry.t
        self.helped += bool(entry.hints)
        if entry.is_clean:
            self.clean += 1
            self.open = max(0, self.open - 1)
            if not self.open and entry.t >= self.due:
                self.box = min(self.box + 1, len(BOXES) - 1)
                self.due = entry.t + BOXES[self.box] * DAY
        elif entry.verdict in RIGHT:
            self.open = max(self.open, 1)
            self.failed = self.failed or entry
        else:
            self.wrong += entry.verdict == "wrong"
            self.shown += entry.verdict == "shown"
            self.box, self.due, self.failed = 0, entry.t, entry
            self.open = max(self.open, _AFTER_A_MISTAKE if entry.mistakes else 1)
            self.mistakes = entry.mistakes or self.mistakes


class DoneExercise(Record):
    """One exercise that was done: where it stands in the log, and how it went."""

    name: str
    stage: int
    clean: bool
    failures: int
    done: bool = False

    @property
    def recipe(self) -> str:
        return self.name.partition("#")[0]


class Progress:
    """What a log says about one student: skills, and exercises in their order."""

    def __init__(self, entries: Iterable[LogEntry] = (), student: str = "") -> None:
        self.student = student
        self.skills: dict[str, SkillState] = {}
        self.exercises: list[DoneExercise] = []
        self.seeds: dict[str, int] = {}
        self.seen: dict[str, set[str]] = {}
        for entry in entries:
            if entry.student == student:
                self.add(entry)

    @classmethod
    def of(cls, path: Path, student: str) -> Progress:
        """What the log there says of a student; nothing, where there is none yet."""
        return cls(read(path) if path.is_file() else (), student)

    def add(self, entry: LogEntry) -> None:
        """Take one more entry into account."""
        self._exercise(entry)
        if entry.seed is not None:
            self.seeds[entry.recipe] = max(entry.seed, self.seeds.get(entry.recipe, 0))
        if entry.verdict == "done":
            return
        self.seen.setdefault(entry.recipe, set()).add(entry.skill)
        self.skills.setdefault(entry.skill, SkillState()).add(entry)

    def _exercise(self, entry: LogEntry) -> None:
        last = self.exercises[-1] if self.exercises else None
        if entry.verdict == "done":
            if last is not None and last.name == entry.exercise:
                self.exercises[-1] = last.changed(done=True)
            return
        failed = entry.verdict not in RIGHT
        if last is None or last.name != entry.exercise or last.done:
            self.exercises.append(DoneExercise(entry.exercise, entry.stage, entry.is_clean, int(failed)))
        else:
            self.exercises[-1] = last.changed(clean=last.clean and entry.is_clean, failures=last.failures + failed)

    def stage(self, recipe: str) -> int:
        """The stage at which a recipe goes on: up after one without a fault, down after one with two."""
        last = next((exercise for exercise in reversed(self.exercises) if exercise.recipe == recipe), None)
        if last is None:
            return 1
        if last.clean and last.done:
            return min(last.stage + 1, LAST_STAGE)
        return max(1, last.stage - (last.failures > 1))

    def is_known(self, recipe: str) -> bool:
        """Whether a recipe was once done from scratch without a fault."""
        return any(
            one.recipe == recipe and one.stage == LAST_STAGE and one.clean and one.done for one in self.exercises
        )


def by_student(entries: Iterable[LogEntry]) -> dict[str, Progress]:
    """The state of every student of a log."""
    found: dict[str, Progress] = {}
    for entry in entries:
        found.setdefault(entry.student, Progress(student=entry.student)).add(entry)
    return found


# What is told.

#: Mistakes that a report lists.
_MOST_MISTAKES = 10


class SkillRow(Record):
    """One student's lines of one skill.

    Parameters
    ----------
    tries : answers; `first_try`: right at the first try without help; `wrong`, `shown`: tries not right, results asked for
    helped : of these after a hint
    box : in which box the skill is (0 to 6); `due`: days until it comes again, 0: now
    """

    student: str
    skill: str
    tries: int
    first_try: int
    wrong: int
    helped: int
    shown: int
    box: int
    due: int


def rows(states: Iterable[Progress], now: float) -> list[SkillRow]:
    """Every student's skills, in the order of the curriculum."""
    place = {name: number for number, name in enumerate(SKILLS)}
    found = [_row(state.student, name, skill, now) for state in states for name, skill in state.skills.items()]
    return sorted(found, key=lambda row: (row.student, place.get(row.skill, len(place))))


def _row(student: str, name: str, skill: SkillState, now: float) -> SkillRow:
    due = 0 if skill.open else max(0, math.ceil((skill.due - now) / DAY))
    return SkillRow(student, name, skill.tries, skill.clean, skill.wrong, skill.helped, skill.shown, skill.box, due)


def mistakes(entries: Iterable[LogEntry]) -> list[tuple[str, int, int]]:
    """The commonest mistakes: id, how often, by how many students."""
    made = [(entry.mistakes[0], entry.student) for entry in entries if entry.mistakes]
    often = Counter(name for name, _ in made)
    return [(name, count, len({who for what, who in made if what == name})) for name, count in often.most_common()]


def csv_text(found: Sequence[SkillRow]) -> str:
    """A line a student and skill."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(SkillRow._fields)
    for row in found:
        writer.writerow(spreadsheet_text(value) if isinstance(value, str) else value for value in vars(row).values())
    return out.getvalue()


def jsonl_text(found: Sequence[SkillRow]) -> str:
    """A JSON object a line."""
    return "".join(json.dumps({"schema": 1, **vars(row)}, ensure_ascii=False) + "\n" for row in found)


def status(state: Progress, now: float, place: str) -> Report:
    """How one learner stands."""
    found = rows([state], now)
    done = sum(one.done for one in state.exercises)
    where = Message("The log: {path}. Nothing of it is sent anywhere; attncli practice forget deletes it.", path=place)
    nothing = Message("Nothing has been practised yet. Begin with: attncli practice")
    said = (_skills_table(found, named=False), Message("Exercises done: {done}.", done=done)) if found else (nothing,)
    return Report("practice", Message("Practice"), 0, {}, (*said, where))


def report(entries: Sequence[LogEntry], now: float) -> Report:
    """A class: a table by student and skill, and the commonest mistakes."""
    found = rows(by_student(entries).values(), now)
    said = Message(
        "Entries: {entries}; students: {students}.",
        entries=len([entry for entry in entries if entry.verdict != "done"]),
        students=len({row.student for row in found}),
    )
    common = mistakes(entries)[:_MOST_MISTAKES]
    tables = [_skills_table(found, named=True)] if found else []
    if common:
        ids, counts, students = zip(*common, strict=True)
        done = tuple(Message(CATALOGUE[name].did) if name in CATALOGUE else "" for name in ids)
        columns = (
            Column("mistake", Message("mistake"), ids),
            Column("count", Message("how often"), counts),
            Column("students", Message("students"), students),
            Column("what", Message("what was done"), done),
        )
        tables.append(Table("mistakes", Message("The commonest mistakes"), columns))
    return Report("practice", Message("Practice"), 0, {}, (*tables, said))


def _skills_table(found: Sequence[SkillRow], *, named: bool) -> Table:
    columns = (
        Column("skill", Message("skill"), [Message(SKILLS.get(row.skill, row.skill)) for row in found]),
        Column("tries", Message("tries"), [row.tries for row in found]),
        Column("first_try", Message("right at once"), [row.first_try for row in found]),
        Column("wrong", Message("wrong"), [row.wrong for row in found]),
        Column("shown", Message("shown"), [row.shown for row in found]),
        Column("due", Message("comes again"), [_when(row.due) for row in found]),
    )
    who = (Column("student", Message("student"), [row.student or "–" for row in found]),) if named else ()
    return Table("skills", Message("Skills"), (*who, *columns))


def _when(days: int) -> Message:
    if days == 0:
        return Message("now")
    return Message("tomorrow") if days == 1 else Message("in {days} days", days=days)

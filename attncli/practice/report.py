"""What practice logs say: how a learner stands, and a class by student and skill."""

from __future__ import annotations

import csv
import io
import json
import math
from collections import Counter
from collections.abc import Iterable, Sequence

from attncli.core.message import N_, Message
from attncli.core.outputs import spreadsheet_text
from attncli.core.record import Record
from attncli.core.report import Column, Report, Table
from attncli.mistakes import CATALOGUE
from attncli.practice.log import DAY, LogEntry, Progress, Skill, by_student
from attncli.practice.skills import SKILLS

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
    order = list(SKILLS)
    found = [(state, id, skill) for state in states for id, skill in state.skills.items()]
    found.sort(key=lambda one: (one[0].student, order.index(one[1]) if one[1] in order else len(order)))
    return [_row(state.student, id, skill, now) for state, id, skill in found]


def _row(student: str, id: str, skill: Skill, now: float) -> SkillRow:
    due = 0 if skill.open else max(0, math.ceil((skill.due - now) / DAY))
    return SkillRow(student, id, skill.tries, skill.clean, skill.wrong, skill.helped, skill.shown, skill.box, due)


def mistakes(entries: Iterable[LogEntry]) -> list[tuple[str, int, int]]:
    """The commonest mistakes: id, how often, by how many students."""
    seen = [(id, entry.student) for entry in entries for id in entry.mistakes[:1]]
    often = Counter(id for id, _ in seen)
    return [(id, count, len({student for one, student in seen if one == id})) for id, count in often.most_common()]


def csv_text(found: Sequence[SkillRow]) -> str:
    """A line a student and skill."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(SkillRow._fields)
    writer.writerows([_cell(getattr(row, name)) for name in SkillRow._fields] for row in found)
    return out.getvalue()


def _cell(value: object) -> object:
    return spreadsheet_text(value) if isinstance(value, str) else value


def jsonl_text(found: Sequence[SkillRow]) -> str:
    """A JSON object a line."""
    return "".join(
        json.dumps({"schema": 1, **{name: getattr(row, name) for name in SkillRow._fields}}, ensure_ascii=False) + "\n"
        for row in found
    )


def status(state: Progress, now: float, place: str) -> Report:
    """How one learner stands."""
    found = rows([state], now)
    done = sum(one.done for one in state.exercises)
    said = [
        Message(N_("Exercises done: {done}."), done=done)
        if found
        else Message(N_("Nothing is practised yet. Begin with: attncli practice")),
        Message(N_("The log: {path}. Nothing of it is sent anywhere; attncli practice forget deletes it."), path=place),
    ]
    table = [_skills_table(found, named=False)] if found else []
    return Report("practice", Message(N_("Practice")), 0, {}, (*table, *said))


def report(entries: Sequence[LogEntry], now: float) -> Report:
    """A class: a table by student and skill, and the commonest mistakes."""
    found = rows(by_student(entries).values(), now)
    said = Message(
        N_("Entries: {entries}; students: {students}."),
        entries=len([entry for entry in entries if entry.verdict != "done"]),
        students=len({row.student for row in found}),
    )
    common = mistakes(entries)[:_MOST_MISTAKES]
    tables = [_skills_table(found, named=True)] if found else []
    if common:
        ids, counts, students = zip(*common, strict=True)
        done = tuple(Message(CATALOGUE[name].did) if name in CATALOGUE else "" for name in ids)
        tables.append(
            Table(
                "mistakes",
                Message("The commonest mistakes"),
                (
                    Column("mistake", Message("mistake"), ids),
                    Column("count", Message("how often"), counts),
                    Column("students", Message("students"), students),
                    Column("what", Message("what was done"), done),
                ),
            )
        )
    return Report("practice", Message(N_("Practice")), 0, {}, (*tables, said))


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
        return Message(N_("now"))
    return Message(N_("tomorrow")) if days == 1 else Message(N_("in {days} days"), days=days)

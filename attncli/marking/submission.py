"""A learner's sheet as it was handed in: where it came from and its text, or its file, not read yet.

Reading it can go wrong, and then it is one malformed result; it never stops the others.
"""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

from attncli.core.limits import MOST_ARRAY_BYTES, MOST_SHEET_BYTES
from attncli.core.message import N_, AttnError, InputError, Message
from attncli.core.record import Record
from attncli.problems.answers import Sheet, answer, sheet, sheet_data, sheet_from_arrays
from attncli.problems.reading import as_text, parse_json, read_bounded
from attncli.problems.source import arrays_from_npz

#: Characters of a name that a sheet claims.
_MOST_CLAIMED = 60

_CLAIM = N_("This sheet names “{claimed}”, but it was handed in as that of {name}. It counts for {name}.")


class Submission(Record):
    """One sheet, not read yet.

    Parameters
    ----------
    kind : "line" (JSON), "row" (CSV), "file", or "broken" (what is wrong stands in `fault`)
    name : the student it belongs to if the sheet itself does not say
    text : the line, or the path of the file
    header, cells : the columns of a row that count, and what stands in them
    content : the bytes of the file, where it has been read already
    placed : its place says whose it is, whatever name the sheet itself claims
    """

    kind: str
    name: str
    text: str = ""
    header: tuple[str, ...] = ()
    cells: tuple[str, ...] = ()
    content: bytes | None = None
    fault: Message | None = None
    placed: bool = False

    def read(self) -> Sheet:
        """The sheet.

        Raises
        ------
        AttnError
            It cannot be read; the message says why.
        """
        if self.kind == "row":
            return self._row()
        if self.kind == "file" and self._ending == ".npz":
            return sheet_from_arrays(self._arrays(), self.name)
        data = self._data()
        found, claimed = sheet(data), _student(data)
        if not self.placed:
            return found.changed(student=claimed or self.name)
        notes = found.notes
        if claimed and claimed.casefold() != self.name.casefold():
            notes = (*notes, Message(_CLAIM, name=self.name, claimed=claimed[:_MOST_CLAIMED]))
        return found.changed(student=self.name, notes=notes)

    def student(self) -> str:
        """Whose it is, as far as that can be found out."""
        try:
            if self.kind == "row":
                return self._row().student or self.name
            if self.kind == "line" or (self.kind == "file" and not self.placed and self._ending != ".npz"):
                return _student(self._data()) or self.name
        except (AttnError, MemoryError, RecursionError, OSError):
            pass
        return self.name

    def problem(self) -> str | None:
        """The id of the problem that it says it answers."""
        try:
            if self.kind == "row":
                return dict(zip(self.header, self.cells, strict=False)).get("problem", "").strip() or None
            if self.kind == "line" or (self.kind == "file" and self._ending != ".npz"):
                data = self._data()
                name = data.get("problem") if isinstance(data, dict) else None
                return name if isinstance(name, str) and name else None
        except (AttnError, MemoryError, RecursionError, OSError):
            pass
        return None

    def carried(self) -> Submission:
        """The same with the file's bytes in it, to be read where the file is not."""
        if self.kind != "file" or self.content is not None:
            return self
        try:
            return self.changed(content=read_bounded(self.text, MOST_SHEET_BYTES))
        except AttnError as error:
            return Submission("broken", self.name, fault=error.message)

    def content_parts(self) -> tuple[object, ...]:
        """Everything that its result depends on, but for whose it is."""
        place = self.name if self.kind in ("file", "broken") else ""
        return (
            self.kind,
            place,
            self.text if self.kind == "line" else self._ending,
            self.header,
            self.cells,
            self.content,
            self.fault,
        )

    @property
    def _ending(self) -> str:
        return Path(self.text).suffix.lower()

    def _data(self) -> Any:
        """What stands in the line or file, by the names of JSON and TOML."""
        if self.fault is not None:
            raise InputError("{fault}", fault=self.fault)
        if self.kind == "line":
            return parse_json(self.text)
        return sheet_data(as_text(self._bytes(), self.text), json=self._ending != ".toml")

    def _bytes(self) -> bytes:
        return read_bounded(self.text, MOST_SHEET_BYTES) if self.content is None else self.content

    def _arrays(self) -> dict[str, Any]:
        import tempfile
        import zipfile

        data = self._bytes()
        try:
            with zipfile.ZipFile(io.BytesIO(data)) as archive:
                size = sum(member.file_size for member in archive.infolist())
        except (zipfile.BadZipFile, ValueError, NotImplementedError):
            size = 0  # the reader below says what is wrong
        if size > MOST_ARRAY_BYTES:
            raise InputError("unpacks to more than {limit} bytes, the limit here.", limit=f"{MOST_ARRAY_BYTES:,}")
        if self.content is None:
            return arrays_from_npz(self.text)
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "sheet.npz"
            path.write_bytes(data)
            return arrays_from_npz(str(path))

    def _row(self) -> Sheet:
        cells = dict(zip(self.header, self.cells, strict=False))
        student = cells.pop("student", "").strip() or self.name
        cells.pop("problem", None)
        return Sheet(student, {name: answer(text) for name, text in cells.items() if name and text.strip()})


def _student(data: Any) -> str | None:
    """The student that a sheet names, or None."""
    name = data.get("student") if isinstance(data, dict) else None
    return str(name).strip() or None if isinstance(name, (str, int, float)) and not isinstance(name, bool) else None

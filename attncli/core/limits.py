"""Every limit in one place: how much may be read, recorded and shown, and for how long one sheet may be marked.

Each is far above what a page, a class or a program's dump needs, and low enough that no input of less than a megabyte
takes more than twenty seconds or a gigabyte on two cores. A message that refuses something names the limit, what was
asked for, and what to do instead.
"""

from __future__ import annotations

# What is read.

#: Bytes of a text: a problem file, a matrix, standard input.
MOST_TEXT_BYTES = 16_000_000
#: Bytes of a file of arrays, of one array, and of everything that an .npz unpacks to.
MOST_ARRAY_BYTES = 64_000_000
#: Numbers of one array: as float64 they are as many bytes again as the limit above.
MOST_ARRAY_CELLS = 8_000_000
#: Arrays that an .npz may hold.
MOST_ARRAYS = 1000

# Sheets of a class.

#: Bytes that one sheet may have; a page of numbers has a few thousand.
MOST_SHEET_BYTES = 2_000_000
#: Characters of the answer to one step.
MOST_ANSWER_CHARACTERS = 200_000
#: Names on one sheet that are no steps: near ones are looked for, each of them costs.
MOST_UNKNOWN_NAMES = 50
#: Columns of a class as CSV.
MOST_COLUMNS = 5000
#: Lines that one row of a CSV may have; a quote that is never closed is looked for no further.
MOST_ROW_LINES = 2000
#: Seconds that one sheet may take to be marked.
MOST_SECONDS = 20

# What is calculated and shown.

#: Numbers that a calculation records, of all its steps together.
MOST_CELLS = 10_000_000
#: Numbers of all steps of an exercise that is marked: each is worked out in several ways, with bounds.
MOST_MARKED_CELLS = 150_000
#: Numbers that a page is written from, by format.
MOST_SHOWN_CELLS = {"json": 4_000_000, "csv": 500_000, "html": 100_000, "markdown": 50_000, "latex": 50_000}
#: Cells whose arithmetic --expand writes out, and the terms in it.
MOST_EXPANDED_CELLS = 3000
MOST_EXPANDED_TERMS = 30_000

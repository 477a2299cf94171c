"use strict";
(() => {
  const root = document.getElementById("attncli");
  const data = JSON.parse(document.getElementById("attncli-data").textContent);
  const find = (selector, within = root) => within.querySelector(selector);
  const all = (selector, within = root) => [...within.querySelectorAll(selector)];
  const arithmeticLine = find('[data-role="arithmetic"]');
  const messageLine = find('[data-role="message"]');

  // --- The calculation: every number is given or has a term, and a term is all that is ever evaluated ---------------

  const FROM_JSON = { "inf": Infinity, "-inf": -Infinity, "nan": NaN };
  const cells = [];
  const numberOf = new Map(); // by name: "A[1,2]"
  const steps = new Map();
  for (const step of data.steps) {
    step.first = cells.length;
    steps.set(step.id, step);
    step.values.forEach((value, flat) => {
      const place = placeOf(flat, step.shape).join(",");
      const own = typeof value === "string" ? FROM_JSON[value] : value;
      const cell = { step, name: `${step.id}[${place}]`, label: `${step.name}[${place}]`, own, term: step.terms ? step.terms[flat] : null };
      numberOf.set(cell.name, cells.length);
      cells.push(cell);
    });
  }
  const now = cells.map((cell) => cell.own);

  /** The indices of a number as they are shown: counted from 1, with tokens as columns the last two exchanged. */
  function placeOf(flat, shape) {
    const place = [];
    for (let axis = shape.length - 1; axis >= 0; axis--) {
      place.unshift((flat % shape[axis]) + 1);
      flat = Math.floor(flat / shape[axis]);
    }
    if (data.columns && place.length > 1) place.push(...place.splice(-2).reverse());
    return place;
  }

  /** erf by its series of positive terms: nothing cancels, so every digit holds. */
  function erf(x) {
    if (Number.isNaN(x)) return x;
    if (Math.abs(x) > 6) return Math.sign(x);
    let term = x;
    let sum = x;
    for (let n = 1; Math.abs(term) > 1e-17 * Math.abs(sum); n++) {
      term *= (2 * x * x) / (2 * n + 1);
      sum += term;
    }
    return (2 / Math.sqrt(Math.PI)) * Math.exp(-x * x) * sum;
  }

  const WORK = {
    sum: (parts) => parts.reduce((sum, part) => sum + part, 0),
    product: (parts) => parts.reduce((product, part) => product * part, 1),
    difference: ([a, b]) => (a === -Infinity && b === -Infinity ? a : a - b), // what is hidden stays hidden
    quotient: ([a, b]) => a / b,
    negative: ([a]) => -a,
    exp: ([a]) => Math.exp(a),
    ln: ([a]) => Math.log(a),
    root: ([a]) => Math.sqrt(a),
    power: ([a, b]) => a ** b,
    tanh: ([a]) => Math.tanh(a),
    erf: ([a]) => erf(a),
    sin: ([a]) => Math.sin(a),
    cos: ([a]) => Math.cos(a),
    max: (parts) => Math.max(...parts),
    positive: ([a]) => (a > 0 ? 1 : 0),
  };

  const IN_FULL = { cell: (number) => now[number], constant: (term) => term[1] };

  function evaluate(term, read = IN_FULL) {
    if (typeof term === "number") return read.cell(term);
    if (term[0] === "#") return read.constant(term);
    return WORK[term[0]](term.slice(1).map((part) => evaluate(part, read)));
  }

  /** The cells that a term names, in reading order. */
  function named(term, into = []) {
    if (typeof term === "number") into.push(term);
    else if (term && term[0] !== "#" && term[0] !== "text") term.slice(1).forEach((part) => named(part, into));
    return into;
  }

  const operands = cells.map((cell) => [...new Set(named(cell.term))]);
  const used = cells.map(() => []);
  operands.forEach((cellsOf, number) => cellsOf.forEach((one) => used[one].push(number)));
  const isWord = (cell) => Array.isArray(cell.term) && cell.term[0] === "text";

  /** Everything that can be walked to, without the start. */
  function walked(start, ways) {
    const found = new Set();
    const waiting = [...start];
    while (waiting.length) {
      for (const next of ways[waiting.pop()]) {
        if (!found.has(next)) {
          found.add(next);
          waiting.push(next);
        }
      }
    }
    return found;
  }

  const edits = new Map(); // number of an input -> { value, text }

  /** All numbers after the changes. What does not follow from one stays attncli's own, to the last bit. */
  function calculate() {
    cells.forEach((cell, number) => (now[number] = cell.own));
    edits.forEach((edit, number) => (now[number] = edit.value));
    const following = [...walked(edits.keys(), used)].sort((a, b) => a - b);
    for (const number of following) if (!isWord(cells[number])) now[number] = evaluate(cells[number].term);
  }

  /** The largest number on the way through a term. */
  function largest(term) {
    const value = Math.abs(evaluate(term));
    const inner = typeof term === "number" || term[0] === "#" ? [] : term.slice(1).map(largest);
    return Math.max(Number.isFinite(value) ? value : 0, ...inner);
  }

  /** Numbers at which the terms do not come to what attncli calculated: none, unless the file was altered. */
  function altered() {
    const wrong = [];
    cells.forEach((cell, number) => {
      if (cell.term === null || isWord(cell)) return;
      const worked = evaluate(cell.term);
      const size = Math.max(Math.abs(cell.own), largest(cell.term)); // what cancels leaves the error of what it was
      const same = Object.is(worked, cell.own) || worked === cell.own || Math.abs(worked - cell.own) <= 1e-9 * size;
      if (!same) wrong.push(number);
    });
    return wrong;
  }

  // --- Numbers and terms as text, as attncli writes them ------------------------------------------------------------

  /** Half away from zero; what is a tie to 15 digits is one (2.675 is held as 2.67499…). */
  function rounded(value, places) {
    const power = 10 ** places;
    const scaled = Math.abs(value) * power;
    const below = Math.floor(scaled);
    if (!(scaled < 2 ** 52) || below / power === Math.abs(value) || (below + 1) / power === Math.abs(value)) return value;
    const rest = scaled - below;
    const tie = Math.abs(rest - 0.5) <= Math.min(scaled * 3 * Number.EPSILON, 0.1);
    return (Math.sign(value) * (below + (tie || rest > 0.5 ? 1 : 0))) / power;
  }

  function written(value, places) {
    if (Number.isNaN(value)) return "NaN";
    if (!Number.isFinite(value)) return value < 0 ? "−∞" : "∞";
    if (Math.abs(value) >= 1e15) return value.toExponential(6);
    if (Number.isInteger(value)) return String(value === 0 ? 0 : value);
    const short = rounded(value, places);
    return short === 0 ? (0).toFixed(places) : short.toFixed(places);
  }

  const shown = (number) => written(now[number], cells[number].step.places);
  const single = (text) => !/[ ×/+]/.test(text);
  const grouped = (text) => (single(text) ? text : `(${text})`);
  const minus = (text) => text[0] === "-" || text[0] === "−";

  function joined(parts) {
    if (!parts.length) return "0";
    return parts.slice(1).reduce((out, part) => {
      if (part[0] === "-" && single(part)) return `${out} - ${part.slice(1)}`;
      return minus(part) ? `${out} + (${part})` : `${out} + ${part}`;
    }, parts[0]);
  }

  const KIND = (term) => (typeof term === "number" ? "cell" : term[0]);
  const TEXT = {
    sum: (parts) => joined(parts),
    difference([a, b]) {
      if (a === "−∞" && b === "−∞") return a;
      const simple = single(b) || (b.includes("×") && !b.includes(" "));
      return `${a} - ${minus(b) || !simple ? `(${b})` : b}`;
    },
    product: (parts, kinds) =>
      parts
        .map((part, i) => {
          if (minus(part) && i > 0) return `(${part})`;
          return ["sum", "difference", "quotient"].includes(kinds[i]) || part.includes(" ") ? `(${part})` : part;
        })
        .join("×"),
    quotient: (parts, kinds) => parts.map((part, i) => (kinds[i] === "exp" ? part : grouped(part))).join(" / "),
    exp: ([a]) => (single(a) ? `e^${a}` : `e^(${a})`),
    negative: ([a], [kind]) => (["cell", "ln", "exp", "root"].includes(kind) && a[0] !== "-" ? `-${a}` : `-(${a})`),
    root: ([a]) => (single(a) ? `√${a}` : `√(${a})`),
    power: ([a, b]) => `${grouped(a)}^${single(b) ? b : `(${b})`}`,
    positive: ([a]) => `[${a} > 0]`,
  };

  function termText(term, show) {
    if (typeof term === "number") return show(term);
    if (term[0] === "#") return term[2];
    if (term[0] === "text") return term[1];
    const parts = term.slice(1).map((part) => termText(part, show));
    const write = TEXT[term[0]];
    return write ? write(parts, term.slice(1).map(KIND)) : `${term[0]}(${parts.join(", ")})`;
  }

  /** An attention weight down to the powers of e, as a person writes it. */
  function opened(term) {
    if (typeof term === "number") return cells[term].step.opens ? opened(cells[term].term) : term;
    return term[0] === "#" || term[0] === "text" ? term : [term[0], ...term.slice(1).map(opened)];
  }

  // Whether an equation is true as printed: the printed numbers, calculated with, give the printed result. Else ≈ stands.
  const AS_PRINTED = { cell: (number) => valueOf(shown(number)), constant: (term) => valueOf(term[2]) };
  const valueOf = (text) => Number(text.replace("−", "-").replace("∞", "Infinity"));
  const decimalsOf = (text) => (text.includes("e") ? 0 : text.split(".")[1]?.length ?? 0);

  function isTrue(term, result, places) {
    if (term[0] === "text") return true;
    const left = evaluate(term, AS_PRINTED);
    const right = valueOf(result);
    if (!Number.isFinite(left) || !Number.isFinite(right)) return Object.is(left, right);
    const [digits, power] = result.split("e");
    let unit = Number(power ?? 0) - decimalsOf(digits); // the power of ten that the result ends with
    if (unit === 0) unit = -Math.max(places, ...named(term).map((number) => decimalsOf(shown(number))));
    const count = Math.abs(left) * 10 ** -unit;
    const rest = count - Math.floor(count);
    const units = Math.floor(count) + (rest > 0.5 - 1e-9 ? 1 : 0);
    return Math.sign(left) * units === Math.round(right * 10 ** -unit) || (units === 0 && right === 0);
  }

  /** The arithmetic of a number: "A[1,2] = 1 / 1.493 = 0.670". A hidden answer has its name in the place of its digits. */
  function arithmetic(number) {
    const cell = cells[number];
    const seen = (one) => (isHidden(one) ? cells[one].label : shown(one));
    if (cell.term === null) return `${cell.label} = ${shown(number)}  (${say("given")})`;
    const term = cell.step.weights ? opened(cell.term) : cell.term;
    const result = isHidden(number) ? "?" : shown(number);
    if (typeof term === "number") return `${cell.label} = ${cells[term].label} = ${result}`;
    const left = termText(term, seen);
    if (left === result) return `${cell.label} = ${result}`;
    const sign = isHidden(number) || named(term).some(isHidden) || isTrue(term, result, cell.step.places) ? "=" : "≈";
    return `${cell.label} = ${left} ${sign} ${result}`;
  }

  // --- What stands on the page --------------------------------------------------------------------------------------

  const language = () => (find(".to-zh").checked ? "zh" : "en");
  const say = (key, fields = {}) =>
    data.words[language()][key].replace(/\{(\w+)\}/g, (place, name) => (name in fields ? String(fields[name]) : place));

  const elements = new Map(); // number -> its td or input
  const copies = new Map(); // number -> tds beside results
  const columnOf = new Map(); // number -> the numbers of its column in its table
  for (const element of all("[data-cell]")) elements.set(numberOf.get(element.dataset.cell), element);
  const tables = all("table[role=grid]").map((table) =>
    all("tbody tr", table).map((row) => all("[data-cell]", row).map((element) => numberOf.get(element.dataset.cell))),
  );
  const placed = new Map(); // number -> [table, row, column]
  tables.forEach((rows, table) =>
    rows.forEach((row, i) =>
      row.forEach((number, j) => {
        placed.set(number, [table, i, j]);
        columnOf.set(number, rows.map((line) => line[j]));
      }),
    ),
  );
  const boxOf = (number) => {
    const element = elements.get(number);
    return element && (element.tagName === "INPUT" ? element.parentElement : element);
  };
  const isInput = (number) => elements.get(number)?.tagName === "INPUT";
  const canBeChanged = (number) => isInput(number) && cells[number].term === null;

  // Answers that are hidden, and what was typed in their places.
  let hiding = false;
  const answers = new Map();
  const isAsked = (number) => cells[number].term !== null && !isWord(cells[number]) && elements.has(number);
  const isRight = (number) => answers.has(number) && answers.get(number).right;
  const isHidden = (number) => hiding && cells[number].term !== null && !isWord(cells[number]) && !isRight(number);

  function pads(numbers) {
    const texts = numbers.map((number) => (isHidden(number) ? "" : edits.get(number)?.text ?? shown(number)));
    const tail = (text) => (text.includes(".") ? text.length - text.indexOf(".") : 0);
    const longest = Math.max(0, ...texts.map(tail));
    return texts.map((text) => (/^-?\d+(\.\d+)?$/.test(text) ? "." .repeat(!text.includes(".") && longest > 0) + "0".repeat(Math.max(0, longest - Math.max(1, tail(text)))) : ""));
  }

  /** Write these numbers anew wherever they stand. */
  function show(numbers) {
    const columns = new Set();
    for (const number of numbers) {
      const element = elements.get(number);
      if (!element) continue;
      if (canBeChanged(number)) {
        const edit = edits.get(number);
        element.value = edit ? edit.text : shown(number);
        element.size = Math.max(2, element.value.length);
        columns.add(columnOf.get(number)[0]);
      } else if (!(hiding && isAsked(number))) {
        element.textContent = shown(number);
        columns.add(columnOf.get(number)[0]);
        shade(element, number);
      }
      const changed = cells[number].term === null ? edits.has(number) : shown(number) !== written(cells[number].own, cells[number].step.places);
      boxOf(number).classList.toggle("changed", changed);
    }
    for (const first of columns) {
      const column = columnOf.get(first);
      pads(column).forEach((pad, i) => {
        const element = elements.get(column[i]);
        const box = canBeChanged(column[i]) ? element.parentElement : element;
        if (box.tagName !== "INPUT") pad ? (box.dataset.pad = pad) : delete box.dataset.pad;
      });
    }
    for (const number of numbers) for (const copy of copies.get(number) || []) writeCopy(copy, number);
  }

  function shade(box, number) {
    if (!cells[number].step.weights) return;
    const share = isHidden(number) || Number.isNaN(now[number]) ? 0 : Math.min(1, Math.max(0, now[number]));
    box.style.setProperty("--share", share.toFixed(3));
  }

  function writeCopy(copy, number) {
    copy.textContent = isHidden(number) ? "?" : shown(number);
    shade(copy, number);
    copy.classList.toggle("changed", boxOf(number).classList.contains("changed"));
  }

  /** The operands of a step beside its result. In a long page they are made when it comes into sight: most never do. */
  const MOST_BESIDE = 240;
  const MOST_AT_ONCE = 2000;
  function putOperandsBeside(section) {
    const step = steps.get(section.dataset.step);
    if (!step.operands || section.classList.contains("beside")) return;
    section.classList.add("beside");
    const shownOnes = step.operands.filter((id) => document.getElementById(`attncli-${id.replace(/\s/g, "")}`));
    if (shownOnes.reduce((sum, id) => sum + steps.get(id).values.length, 0) > MOST_BESIDE) return;
    const beside = document.createElement("div");
    beside.className = "operands";
    for (const id of shownOnes) {
      const from = document.getElementById(`attncli-${id.replace(/\s/g, "")}`);
      for (const block of all(":scope > .matrices > .scroll", from)) beside.append(copyOf(block));
    }
    if (!beside.childElementCount) return;
    const arrow = document.createElement("span");
    arrow.className = "arrow";
    arrow.setAttribute("aria-hidden", "true");
    arrow.textContent = "→";
    beside.append(arrow);
    find(":scope > .matrices", section).prepend(beside);
  }

  function copyOf(block) {
    const copy = block.cloneNode(true);
    copy.removeAttribute("tabindex");
    for (const table of all("table", copy)) table.removeAttribute("role");
    for (const element of all("[data-cell]", copy)) {
      const number = numberOf.get(element.dataset.cell);
      const box = element.tagName === "INPUT" ? element.parentElement : element;
      box.replaceChildren();
      delete box.dataset.cell;
      box.removeAttribute("tabindex");
      box.className = cells[number].step.weights ? "share" : "";
      box.dataset.operand = cells[number].name;
      copies.set(number, [...(copies.get(number) || []), box]);
      writeCopy(box, number);
    }
    return copy;
  }

  const sight = new IntersectionObserver(
    (entries) => {
      for (const entry of entries) {
        if (entry.isIntersecting && !root.classList.contains("board")) {
          putOperandsBeside(entry.target);
          sight.unobserve(entry.target);
        }
      }
    },
    { rootMargin: "600px" },
  );
  const sections = all(".step.calculated");
  const copied = sections.flatMap((section) => steps.get(section.dataset.step).operands).reduce((sum, id) => sum + steps.get(id).values.length, 0);
  sections.forEach((section) => (copied <= MOST_AT_ONCE ? putOperandsBeside(section) : sight.observe(section)));

  // The list of a step's arithmetic, written when it is opened.
  function list(details) {
    const lines = find("ul", details);
    lines.textContent = "";
    if (!details.open) return;
    const step = steps.get(details.parentElement.dataset.step);
    for (let number = step.first; number < step.first + step.values.length; number++) {
      const line = document.createElement("li");
      line.textContent = arithmetic(number);
      lines.append(line);
    }
  }
  const lists = all("details.all");
  const listAgain = () => lists.filter((details) => details.open).forEach(list);
  lists.forEach((details) => details.addEventListener("toggle", () => list(details)));

  // --- Pointing at a number -----------------------------------------------------------------------------------------

  let pinned = null;
  let pointed = null;
  const MARKS = ["chosen", "operand", "source", "reached"];
  let marked = [];

  function mark(number, name) {
    for (const box of [boxOf(number), ...(copies.get(number) || [])]) {
      if (box) {
        box.classList.add(name);
        marked.push(box);
      }
    }
  }

  function tell() {
    const number = pointed ?? pinned;
    for (const box of marked) box.classList.remove(...MARKS);
    marked = [];
    if (number === null) {
      setText(arithmeticLine, say("idle"));
      return;
    }
    walked([number], operands).forEach((one) => mark(one, "source"));
    operands[number].forEach((one) => mark(one, "operand"));
    walked([number], used).forEach((one) => mark(one, "reached"));
    mark(number, "chosen");
    const own = written(cells[number].own, cells[number].step.places);
    const before = !isHidden(number) && own !== shown(number) ? `  · ${say("before", { value: own })}` : "";
    const line = arithmetic(number);
    setText(arithmeticLine, line + before + (line.includes("≈") ? `  · ${say("about")}` : ""));
  }

  const setText = (element, text) => {
    if (element.textContent !== text) element.textContent = text;
  };
  const tellLater = (text) => setText(messageLine, text);

  function numberAt(target) {
    const element = target.closest?.("[data-cell], [data-operand], td.given");
    if (!element) return null;
    const name = element.dataset.cell || element.dataset.operand || element.firstElementChild?.dataset.cell;
    return numberOf.get(name) ?? null;
  }

  root.addEventListener("pointerover", (event) => {
    if (event.pointerType === "touch") return;
    const number = numberAt(event.target);
    if (number !== pointed) {
      pointed = number;
      tell();
    }
  });
  root.addEventListener("pointerleave", () => {
    pointed = null;
    tell();
  });
  root.addEventListener("click", (event) => {
    const number = numberAt(event.target);
    if (number === null) return;
    pinned = number;
    if (event.target.closest("[data-cell]")) stop(number);
    tell();
    remember();
  });
  root.addEventListener("focusin", (event) => {
    const number = numberAt(event.target);
    if (number === null) return;
    pinned = number;
    pointed = null;
    stop(number);
    tell();
  });

  // One stop of the Tab key for each table, wherever one was last in it; arrow keys go from number to number.
  const focusable = (number) => elements.get(number);
  const stops = tables.map((rows) => rows[0][0]);
  function stop(number) {
    const place = placed.get(number);
    if (!place) return;
    focusable(stops[place[0]]).tabIndex = isInput(stops[place[0]]) ? 0 : -1;
    stops[place[0]] = number;
    focusable(number).tabIndex = 0;
  }
  tables.forEach((rows, table) => {
    rows.flat().forEach((number) => isInput(number) || (focusable(number).tabIndex = -1));
    focusable(stops[table]).tabIndex = 0;
  });

  const ARROWS = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };
  root.addEventListener("keydown", (event) => {
    if (event.isComposing) return; // an input method is still at work
    if (event.key === "Escape") {
      pinned = pointed = null;
      tell();
      return;
    }
    const number = event.target.closest?.("[data-cell]") ? numberAt(event.target) : null;
    if (number === null || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "Enter" && isInput(number)) {
      event.target.dispatchEvent(new Event("change", { bubbles: true }));
      return;
    }
    if (!(event.key in ARROWS) || event.shiftKey) return;
    if (isInput(number) && !atTheEdge(event.target, event.key)) return;
    const next = neighbour(number, ...ARROWS[event.key]);
    if (next === null) return;
    event.preventDefault();
    const element = focusable(next);
    element.focus();
    if (element.tagName === "INPUT") element.select();
  });

  /** Within the text of an entry, left and right belong to its letters. */
  function atTheEdge(input, key) {
    const { selectionStart: start, selectionEnd: end, value } = input;
    if (key === "ArrowUp" || key === "ArrowDown" || (start === 0 && end === value.length)) return true;
    return key === "ArrowLeft" ? end === 0 : start === value.length;
  }

  function neighbour(number, down, right) {
    const [table, i, j] = placed.get(number);
    const rows = tables[table];
    const inside = rows[i + down]?.[j + right];
    if (inside !== undefined) return inside;
    const other = tables[table + (down || right)];
    if (!other) return null;
    const lines = other.length;
    const row = down ? (down > 0 ? 0 : lines - 1) : Math.min(i, lines - 1);
    const width = other[row].length;
    return other[row][right ? (right > 0 ? 0 : width - 1) : Math.min(j, width - 1)];
  }

  // --- Changing an input, or answering ------------------------------------------------------------------------------

  const SAME = { "，": ".", "。": ".", ",": ".", "．": ".", "−": "-", "－": "-", "＋": "+", "／": "/" };

  /** The number that was typed: 1.5, -2, 1/3, 1e-3; null if it is none. Never evaluated as code. */
  function read(text) {
    const plain = text
      .trim()
      .replace(/[，。,．−－＋／]/g, (sign) => SAME[sign])
      .replace(/[０-９]/g, (digit) => String.fromCharCode(digit.charCodeAt(0) - 0xfee0));
    const found = /^([+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?)(?:\s*\/\s*((?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?))?$/i.exec(plain);
    if (!found) return null;
    const value = Number(found[1]) / (found[2] === undefined ? 1 : Number(found[2]));
    return Number.isFinite(value) ? value : null;
  }

  root.addEventListener("change", (event) => {
    const input = event.target;
    if (!input.matches("input[data-cell]")) return;
    const number = numberOf.get(input.dataset.cell);
    cells[number].term === null ? change(number, input) : answer(number, input);
  });

  function refuse(input) {
    input.setAttribute("aria-invalid", "true");
    tellLater(say("wrong", { text: input.value.slice(0, 40) }));
  }

  function change(number, input) {
    const before = edits.get(number);
    const text = input.value.trim();
    if (text === (before ? before.text : shown(number)) && input.getAttribute("aria-invalid") === null) return;
    const value = text === "" ? cells[number].own : read(text);
    if (value === null) return refuse(input);
    input.removeAttribute("aria-invalid");
    const old = now.slice();
    // The text that stands for the given number means that number itself, with all its digits.
    const asGiven = value === cells[number].own || text === written(cells[number].own, cells[number].step.places);
    asGiven ? edits.delete(number) : edits.set(number, { value, text });
    update();
    const count = now.filter((value, one) => one !== number && !Object.is(value, old[one])).length;
    const cell = cells[number].label;
    tellLater(asGiven ? say("back", { cell, value: shown(number) }) : say("changed", { cell, value: text, count }));
    remember();
  }

  /** Calculate, and show what is different. */
  function update() {
    const old = now.slice();
    calculate();
    const different = now.map((_, number) => number).filter((number) => !Object.is(now[number], old[number]) || cells[number].term === null);
    for (const [number, given] of answers) given.right = agrees(number, given.value);
    show(different);
    if (hiding) answers.forEach((_, number) => showAnswer(number));
    root.classList.toggle("edited", edits.size > 0);
    find('[data-do="reset"]').disabled = edits.size + answers.size === 0;
    listAgain();
    tell();
  }

  // An answer is compared by half a unit of the last place shown. That is no mark: rounding on the way may end farther off.
  function agrees(number, value) {
    if (!Number.isFinite(now[number]) || value === null) return Object.is(value, now[number]);
    const unit = 10 ** -cells[number].step.places;
    return Math.abs(value - now[number]) <= unit * (0.5 + 1e-6);
  }

  function readAnswer(text) {
    if (/^[-−－]\s*(inf|∞)$/i.test(text.trim())) return -Infinity;
    if (/^(inf|∞)$/i.test(text.trim())) return Infinity;
    return /^nan$/i.test(text.trim()) ? NaN : read(text);
  }

  function answer(number, input) {
    const text = input.value.trim();
    input.removeAttribute("aria-invalid");
    if (text === "") {
      answers.delete(number);
    } else {
      const value = readAnswer(text);
      if (value === null) {
        answers.delete(number);
        showAnswer(number);
        return refuse(input);
      }
      answers.set(number, { text, value, right: agrees(number, value) });
    }
    showAnswer(number);
    find('[data-do="reset"]').disabled = edits.size + answers.size === 0;
    const asked = [...elements.keys()].filter(isAsked);
    const said = answers.has(number) ? say(isRight(number) ? "agrees" : "differs", { cell: cells[number].label, text }) : "";
    tellLater(`${said} ${say("count", { right: asked.filter(isRight).length, all: asked.length })}`.trim());
    for (const copy of copies.get(number) || []) writeCopy(copy, number);
    listAgain();
    tell();
  }

  function showAnswer(number) {
    const box = boxOf(number);
    box.classList.toggle("right", isRight(number));
    box.classList.toggle("off", answers.has(number) && !isRight(number));
    shade(box, number);
  }

  function hide(on) {
    if (on === hiding && !on) return;
    hiding = on;
    root.classList.toggle("hiding", on);
    find('[data-do="hide"]').setAttribute("aria-pressed", String(on));
    const asked = [...elements.keys()].filter(isAsked);
    for (const number of asked) {
      const box = boxOf(number);
      box.classList.remove("right", "off");
      if (on) {
        delete box.dataset.pad;
        delete box.dataset.cell;
        box.removeAttribute("tabindex");
        const input = document.createElement("input");
        input.dataset.cell = cells[number].name;
        input.setAttribute("aria-label", cells[number].label);
        input.autocomplete = "off";
        input.spellcheck = false;
        input.size = cells[number].step.places + 3;
        input.value = answers.get(number)?.text ?? "";
        box.replaceChildren(input);
        elements.set(number, input);
        showAnswer(number);
      } else {
        box.replaceChildren();
        box.dataset.cell = cells[number].name;
        box.tabIndex = -1;
        elements.set(number, box);
      }
    }
    show(now.map((_, number) => number));
    stops.forEach((number) => (focusable(number).tabIndex = 0));
    listAgain();
    tell();
    tellLater(say(on ? "hide" : "show"));
    fitBoard();
  }

  // --- Views, links, commands ---------------------------------------------------------------------------------------

  const viewRadio = (name) => find(`[name="view"][value="${name}"]`);
  const isBoard = () => viewRadio("board").checked;

  function setView() {
    root.classList.toggle("board", isBoard());
    root.classList.toggle("reading", !isBoard());
    if (!isBoard()) sections.filter((section) => !section.classList.contains("beside")).forEach((section) => sight.observe(section));
    fitBoard();
  }

  // Sizes of letters on the board. On a narrow screen, or where not even the smallest do, it scrolls in a size to read.
  const SIZES = [9, 9.5, 10, 10.5, 11, 11.5, 12, 12.5, 13, 13.5, 14, 15];
  const TO_SCROLL = 11.5;

  /** The largest letters with which the whole board stands on the screen. */
  function fitBoard() {
    if (!isBoard()) return;
    const fits = (size) => {
      root.style.setProperty("--board", `${size}px`);
      return document.documentElement.scrollHeight <= window.innerHeight;
    };
    if (window.innerWidth < 640 || elements.size > MOST_FITTED || !fits(SIZES[0])) {
      fits(TO_SCROLL);
      return;
    }
    let [low, high] = [0, SIZES.length - 1];
    while (low < high) {
      const middle = Math.ceil((low + high) / 2);
      if (fits(SIZES[middle])) low = middle;
      else high = middle - 1;
    }
    fits(SIZES[low]);
  }
  const MOST_FITTED = 1200; // no screen is large enough for more
  window.addEventListener("resize", fitBoard);

  function setLanguage() {
    const tag = language() === "zh" ? "zh-Hans" : "en";
    root.lang = tag;
    document.documentElement.lang = tag;
    listAgain();
    tell();
    messageLine.textContent = "";
    fitBoard();
  }

  /** The state as the part of a link behind #. */
  function fragment() {
    const state = new URLSearchParams();
    edits.forEach((edit, number) => state.append(cells[number].name, edit.text));
    if (isBoard()) state.append("view", "board");
    if (hiding) state.append("answers", "hidden");
    if (language() !== root.dataset.first) state.append("lang", language());
    if (pinned !== null) state.append("cell", cells[pinned].name);
    return state.toString();
  }

  function remember() {
    try {
      history.replaceState(null, "", `${location.href.split("#")[0]}#${fragment()}`);
    } catch {
      // A page in a frame or an attachment's preview may not; the link is still handed out.
    }
  }

  /** The state that a link asks for. Its texts are read as numbers and names, and are nothing else. */
  function obey() {
    const state = new URLSearchParams(location.hash.slice(1));
    const foreign = [];
    edits.clear();
    for (const [name, text] of state) {
      if (["view", "answers", "lang", "cell"].includes(name) || name.startsWith("attncli-")) continue;
      const number = numberOf.get(name);
      const value = number !== undefined && canBeChanged(number) ? read(text) : null;
      if (value === null) foreign.push(name.slice(0, 40));
      else edits.set(number, { value, text: text.trim() });
    }
    viewRadio(state.get("view") === "board" ? "board" : "reading").checked = true;
    const wanted = find(`.to-${state.get("lang") === "zh" ? "zh" : "en"}`);
    if (state.has("lang")) wanted.checked = true;
    const asked = numberOf.get(state.get("cell"));
    if (asked !== undefined && elements.has(asked)) pinned = asked;
    if (hiding !== (state.get("answers") === "hidden")) hide(!hiding);
    setView();
    update();
    setLanguage();
    if (foreign.length) tellLater(say("foreign", { name: foreign[0] }));
  }

  function matrixText(step) {
    const { shape, first } = step;
    const rows = shape.length > 1 ? shape.at(-2) : 1;
    const columns = shape.length ? shape.at(-1) : 1;
    const heads = shape.length > 2 ? shape[0] : 1;
    const entry = (number) => edits.get(number)?.text.replace(/\s/g, "") ?? entryText(now[number]);
    const block = (head) => {
      const at = (i, j) => entry(first + (head * rows + i) * columns + j);
      const turned = data.columns && shape.length > 1;
      const lines = Array.from({ length: turned ? columns : rows }, (_, i) =>
        Array.from({ length: turned ? rows : columns }, (_, j) => (turned ? at(j, i) : at(i, j))).join(" "),
      );
      return lines.join("; ");
    };
    if (shape.length > 2 && heads === 1) {
      return `[[${block(0).split("; ").map((line) => line.split(" ").join(", ")).join("], [")}]]`.replace(/^\[\[/, "[[[").replace(/\]\]$/, "]]]");
    }
    return Array.from({ length: heads }, (_, head) => block(head)).join(" | ");
  }
  const entryText = (value) => (value === -Infinity ? "-inf" : value === Infinity ? "inf" : String(value));

  function commandText() {
    const { before, inputs, after } = data.command;
    const words = [before];
    for (const [id, [option, text]] of Object.entries(inputs)) {
      const step = steps.get(id);
      const changed = [...edits.keys()].some((number) => cells[number].step === step);
      if (changed) words.push(`${option}"${matrixText(step)}"`);
      else if (text !== null) words.push(`${option}"${text}"`);
    }
    if (after) words.push(after);
    return words.join(" ");
  }

  /** Hand out a text: to the clipboard where a page may write there, and always where it can be copied by hand. */
  function handOut(key, text) {
    const box = find('[data-role="copy"]');
    find(".handed").hidden = false;
    find('[data-role="handed"]').textContent = say(key);
    box.value = text;
    box.setAttribute("aria-label", say(key));
    box.focus();
    box.select();
    fitBoard();
    navigator.clipboard?.writeText(text).then(
      () => tellLater(say("copied")),
      () => {},
    );
  }

  const DO = {
    hide() {
      hide(!hiding);
      remember();
    },
    reset() {
      edits.clear();
      answers.clear();
      for (const input of all("[aria-invalid]")) input.removeAttribute("aria-invalid");
      if (hiding) hide(true);
      update();
      remember();
      tellLater(say("reset"));
    },
    link: () => handOut("link", `${location.href.split("#")[0]}#${fragment()}`),
    command: () => handOut("command", commandText()),
  };
  root.addEventListener("click", (event) => {
    const button = event.target.closest("button[data-do]");
    if (button) DO[button.dataset.do]();
    const link = event.target.closest(".contents a");
    if (link) {
      event.preventDefault(); // the part behind # holds the changes
      const section = document.getElementById(link.getAttribute("href").slice(1));
      section.scrollIntoView();
      find("[data-cell]", section).focus({ preventScroll: true });
    }
  });
  root.addEventListener("change", (event) => {
    if (event.target.name === "view") setView();
    else if (event.target.name === "language") setLanguage();
    else return;
    remember();
  });
  root.addEventListener("submit", (event) => event.preventDefault());
  window.addEventListener("hashchange", obey);
  window.addEventListener("beforeprint", () => sections.forEach(putOperandsBeside));

  for (const box of all("[data-share]")) box.style.setProperty("--share", box.dataset.share);
  root.dataset.first = language();
  const wrong = altered();
  cells.forEach((cell, number) => cell.step.weights && elements.has(number) && shade(elements.get(number), number));
  obey();
  if (wrong.length) {
    root.classList.add("altered");
    messageLine.setAttribute("role", "alert");
    tellLater(say("tampered", { count: wrong.length, cell: cells[wrong[0]].label }));
  }
  lists.forEach((details) => details.open && list(details));
  // For whoever wants the numbers in full: attncli.number("A[1,2]") in the browser's console.
  window.attncli = Object.freeze({
    names: () => cells.map((cell) => cell.name),
    number: (name) => now[numberOf.get(name)],
    arithmetic: (name) => arithmetic(numberOf.get(name)),
  });
})();

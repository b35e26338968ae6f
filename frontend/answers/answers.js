// Exercises in the page: an editor where the stub stands, a check, the verdict; hints one after the other.
import { Python } from "./python.js";
import * as store from "./store.js";
import { say } from "./words.js";

const page = JSON.parse(document.getElementById("answers-data").textContent);
const root = new URL(page.root, location.href);
const python = new Python(root);
const served = location.protocol !== "file:";
const boxes = new Map(); // number: its editor
let busy = false;

const make = (tag, given = {}, ...inside) => {
  const element = Object.assign(document.createElement(tag), given);
  element.append(...inside);
  return element;
};

/** The part of the page under an exercise's heading. */
function sectionOf(number) {
  const heading = [...document.querySelectorAll("main h2")].find((each) =>
    each.textContent.trim().startsWith(`${number} `),
  );
  return heading?.closest("section");
}

// the editor

/** Type text as a hand would, so that undo takes it back: a moved selection ends the step before. */
function type(field, text) {
  const { selectionStart, selectionEnd } = field;
  field.focus();
  field.setSelectionRange(0, 0);
  field.setSelectionRange(selectionStart, selectionEnd);
  if (document.execCommand?.("insertText", false, text)) return;
  field.setRangeText(text, field.selectionStart, field.selectionEnd, "end");
  field.dispatchEvent(new Event("input"));
}

function lineStart(field) {
  return field.value.lastIndexOf("\n", field.selectionStart - 1) + 1;
}

/** Indent the lines of a selection. */
function indent(field) {
  const start = lineStart(field), { selectionEnd: end, value } = field;
  field.setSelectionRange(start, end);
  const lines = value.slice(start, end).split("\n").map((line) => (line ? `    ${line}` : line));
  type(field, lines.join("\n"));
  field.setSelectionRange(start, start + lines.join("\n").length);
}

function keys(event) {
  const field = event.target;
  if (event.isComposing) return;
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
    event.preventDefault();
    field.closest(".answer").querySelector("[data-do=check]").click();
    return;
  }
  if (event.key === "Escape") field.dataset.leaving = "yes";
  else if (
    event.key === "Tab" &&
    !event.shiftKey &&
    !field.dataset.leaving &&
    !event.ctrlKey &&
    !event.altKey &&
    !event.metaKey
  ) {
    event.preventDefault();
    if (field.value.slice(field.selectionStart, field.selectionEnd).includes("\n")) indent(field);
    else type(field, " ".repeat(4 - ((field.selectionStart - lineStart(field)) % 4)));
  } else if (event.key === "Backspace" && field.selectionStart === field.selectionEnd) {
    const before = field.value.slice(lineStart(field), field.selectionStart);
    if (before && /^ +$/.test(before) && before.length % 4 === 0) {
      event.preventDefault();
      field.setSelectionRange(field.selectionStart - 4, field.selectionStart);
      document.execCommand("delete");
    }
  }
  if (event.key !== "Escape" && event.key !== "Shift") delete field.dataset.leaving;
}

/** A new line begins under the one before. A phone's keyboard may name no keys, so this asks what is to be put in. */
function newLine(event) {
  if (!["insertLineBreak", "insertParagraph"].includes(event.inputType) || event.isComposing) return;
  event.preventDefault();
  const field = event.target;
  const before = field.value.slice(lineStart(field), field.selectionStart);
  type(field, `\n${before.match(/^ */)[0]}${/:\s*(#.*)?$/.test(before) ? "    " : ""}`);
}

function fit(field) {
  field.rows = Math.min(30, field.value.split("\n").length + 1);
}

// one exercise

function build(exercise) {
  const section = sectionOf(exercise.number);
  const cells = section ? [...section.querySelectorAll(":scope > div.cell")] : [];
  const stub = cells.find((cell) => cell.querySelector("pre")?.textContent.trim() === exercise.stub.trim()) ?? cells[0];
  const check = cells.find((cell) => cell.querySelector("pre")?.textContent.trim() === exercise.call);
  if (!stub) return;
  if (!exercise.runs || !served) {
    stub.before(make("p", { className: "answer-elsewhere" }, exercise.runs ? fileSentence() : elsewhere(exercise)));
    return;
  }
  const id = `answer-${exercise.number.replace(".", "-")}`;
  const field = make("textarea", {
    id,
    className: "answer-code",
    spellcheck: false,
    wrap: "off",
    value: store.load().answers[exercise.number] ?? exercise.stub,
  });
  for (const name of ["autocomplete", "autocorrect", "autocapitalize"]) field.setAttribute(name, "off");
  field.setAttribute("aria-describedby", `${id}-keys`);
  const label = make("label", {
    htmlFor: id,
    className: "answer-label",
    textContent: say("Your answer to {}", exercise.number),
  });
  const button = make("button", { type: "button", className: "answer-check", textContent: checkLabel() });
  button.dataset.do = "check";
  const again = make("button", { type: "button", textContent: say("Start over") });
  const stop = make("button", { type: "button", textContent: say("Stop"), hidden: true });
  const bar = make("progress", { max: 1, value: 0, hidden: true });
  bar.setAttribute("aria-label", say("Loading Python …"));
  const state = make("span", { className: "answer-state" });
  const verdict = make("div", { className: "answer-verdict" });
  verdict.setAttribute("role", "status");
  const help = make("p", {
    id: `${id}-keys`,
    className: "answer-keys",
    textContent: say("Tab indents a line. Shift+Tab, or Escape and then Tab, leaves the field. Ctrl+Enter checks your answer."),
  });
  const box = make(
    "div",
    { className: "answer" },
    label,
    field,
    make("div", { className: "answer-row" }, button, stop, again, bar, state),
    help,
    verdict,
  );
  boxes.set(exercise.number, { exercise, box, field, button, again, stop, bar, state, verdict });
  stub.before(box);
  stub.hidden = true;
  if (check) check.hidden = true;
  let thrown = null; // what was there before "Start over"
  const starting = (text) => {
    thrown = text;
    again.textContent = say(thrown === null ? "Start over" : "Undo");
  };
  field.addEventListener("keydown", keys);
  field.addEventListener("beforeinput", newLine);
  field.addEventListener("input", () => {
    starting(null);
    fit(field);
    keep(exercise, field);
    if (!python.loading) fetchPython(boxes.get(exercise.number));
  });
  field.addEventListener("focus", () =>
    store.change(
      (kept) =>
        (kept.last = { page: page.name, title: `${exercise.number} ${exercise.title}`, at: section.id }),
    ),
  );
  button.addEventListener("click", () => run(boxes.get(exercise.number)));
  stop.addEventListener("click", () => {
    python.stop();
    show(
      boxes.get(exercise.number),
      { kind: "empty", sentence: say("Stopped. What you typed is still here."), printed: "" },
      true,
    );
    ready(false);
  });
  again.addEventListener("click", () => {
    const typed = field.value, back = thrown;
    if (typed === exercise.stub && back === null) return;
    field.select();
    type(field, back ?? exercise.stub);
    verdict.replaceChildren();
    if (back === null) starting(typed);
  });
  fit(field);
  marked(exercise.number);
  hints(section);
}

const fileSentence = () =>
  say(
    "Opened as a file, this page cannot check answers. Serve the folder: run `python -m http.server` in it and open http://localhost:8000.",
  );

/** Why an exercise cannot be checked here, and where it can. */
function elsewhere(exercise) {
  const held = make("span", {}, `${say("○ Not in this page:")} ${exercise.why} `);
  const colab = document.querySelector("a[href*='colab.research.google.com']");
  if (colab) held.append(make("a", { href: colab.href, textContent: say("Open it on Colab") }), " ");
  held.append(
    make("a", {
      href: new URL(page.handout, location.href).href,
      download: "",
      textContent: say("Download the notebook"),
    }),
  );
  return held;
}

const checkLabel = () => (python.files ? say("Check") : say("Check (loads Python once, {} MB)", page.megabytes));

/** Hints come one after the other. */
function hints(section) {
  const folds = [...section.querySelectorAll("details")].filter((each) =>
    /^(Hint|提示)\s*\d/.test(each.querySelector("summary")?.textContent.trim() ?? ""),
  );
  folds.forEach((fold, k) => {
    if (k) fold.hidden = !folds[k - 1].open;
    fold.addEventListener("toggle", () => fold.open && folds[k + 1] && (folds[k + 1].hidden = false));
  });
}

let timer;
let onlyHere = false; // something was typed since the last export
const unsaved = new Map();

function keep(exercise, field) {
  onlyHere = true;
  unsaved.set(exercise.number, field.value === exercise.stub ? null : field.value);
  clearTimeout(timer);
  timer = setTimeout(flush, 300);
}

function flush() {
  if (!unsaved.size) return;
  store.change((state) => {
    for (const [number, text] of unsaved) {
      if (text === null) delete state.answers[number];
      else state.answers[number] = text;
    }
  });
  unsaved.clear();
}

for (const name of ["pagehide", "visibilitychange", "beforeunload"]) addEventListener(name, flush);
addEventListener("beforeunload", (event) => onlyHere && store.problem() && event.preventDefault());

async function fetchPython(held) {
  held.bar.hidden = false;
  held.state.textContent = say("Loading Python …");
  try {
    await python.load(page.chapter, page.graphs, (share) => (held.bar.value = share));
    for (const each of boxes.values()) each.button.textContent = checkLabel();
    held.state.textContent = "";
    return true;
  } catch (error) {
    held.state.textContent = error.message;
    return false;
  } finally {
    held.bar.hidden = true;
  }
}

function ready(working) {
  busy = working;
  for (const each of boxes.values()) {
    each.button.disabled = working;
    each.stop.hidden = true;
  }
}

async function run(held) {
  if (busy) return;
  ready(true);
  flush();
  const { exercise, field } = held;
  try {
    if (!(await fetchPython(held))) return;
    if (!python.running) {
      held.state.textContent = say("Starting Python …");
      await python.start();
    }
    held.state.textContent = say("Checking …");
    held.stop.hidden = false;
    const found = await python.check(field.value, exercise.call, {
      first: (text) => {
        show(held, { kind: "wrong", sentence: text, printed: "" }, true);
        held.state.textContent = say("Looking for the mistake …");
      },
    });
    show(held, found);
    note(exercise, found);
  } catch (error) {
    if (busy) show(held, { kind: "error", sentence: error.message, printed: "" });
  } finally {
    held.state.textContent = "";
    ready(false);
  }
}

const SIGNS = {
  right: "✓ Right:",
  wrong: "✗ Not yet:",
  empty: "○ Still empty:",
  absent: "○ Not in this page:",
  error: "⚠ Python says:",
};

/** A sentence with its code between backticks as code. */
const coded = (sentence) =>
  sentence.split(/`([^`\n]+)`/).map((part, k) => (k % 2 ? make("code", { textContent: part }) : part));

/** The verdict, as text: what an answer says is never read as HTML. */
function show({ verdict, exercise }, { kind, sentence, printed }, passing = false) {
  verdict.className = `answer-verdict answer-${kind}`;
  verdict.replaceChildren(make("p", {}, make("strong", { textContent: say(SIGNS[kind]) }), " ", ...coded(sentence)));
  if (kind === "absent" && !passing) verdict.append(make("p", {}, elsewhereLinks(exercise)));
  if (printed)
    verdict.append(
      make("p", { textContent: say("It printed:") }),
      make("pre", { className: "answer-printed", textContent: printed, tabIndex: 0 }),
    );
}

function elsewhereLinks(exercise) {
  const held = elsewhere({ ...exercise, why: "" });
  held.firstChild.remove();
  return held;
}

function note(exercise, { kind, guess, true: came }) {
  if (!["right", "wrong"].includes(kind)) return;
  store.change((state) => {
    const before = state.done[exercise.number] ?? { tries: 0 };
    const right = before.state === "right" || kind === "right";
    state.done[exercise.number] = {
      state: right ? "right" : "wrong",
      tries: before.tries + 1,
      at: Date.now(),
    };
    if (guess && !state.guessed[exercise.number])
      state.guessed[exercise.number] = { guess: String(guess), came: Boolean(came) };
  });
  marked(exercise.number);
  summary();
}

/** A sign at the heading of what was solved or tried. */
function marked(number) {
  const heading = sectionOf(number)?.querySelector("h2");
  if (!heading) return;
  heading.dataset.answered = store.load().done[number]?.state ?? "";
}

// all of the chapter

let panel;

function summary() {
  const { right, tried, guesses, came } = store.counts(page.chapter);
  const state = store.load();
  const next = page.exercises.find((each) => each.runs && state.done[each.number]?.state !== "right");
  const line = [say("{} of {} right, {} tried.", right, page.exercises.length, tried)];
  if (guesses) line.push(say("Right at the first guess: {} of {}.", came, guesses));
  line.push(next ? say("Next: {}.", `${next.number} ${next.title}`) : say("All done."));
  panel.querySelector(".answer-counts").textContent = line.join(" ");
  const trouble = store.problem();
  panel.querySelector(".answer-kept").textContent =
    trouble === "full"
      ? say(
          "This browser's storage is full, so your work here is lost when you close the page. Export it to keep it.",
        )
      : trouble
        ? say(
            "This browser forbids storage, so your work here is lost when you close the page. Export it to keep it.",
          )
    : say("Your progress stays in this browser.");
}

function buildPanel() {
  const said = make("span", { className: "answer-state" });
  said.setAttribute("role", "status");
  const out = make("button", { type: "button", textContent: say("Export") });
  const pick = make("input", { type: "file", accept: "application/json,.json", hidden: true });
  const back = make("button", { type: "button", textContent: say("Import") });
  const gone = make("button", { type: "button", textContent: say("Delete all") });
  panel = make(
    "div",
    { className: "answer-progress", role: "group" },
    make("p", { className: "answer-counts" }),
    make("p", { className: "answer-kept" }),
    make("div", { className: "answer-row" }, out, back, gone, pick, said),
  );
  out.addEventListener("click", () => {
    flush();
    onlyHere = false;
    const link = make("a", {
      href: URL.createObjectURL(new Blob([store.exported()], { type: "application/json" })),
      download: "my-progress.json",
    });
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  });
  back.addEventListener("click", () => pick.click());
  pick.addEventListener("change", async () => {
    try {
      store.imported(await pick.files[0].text());
      said.textContent = say("Imported.");
      refill();
    } catch (error) {
      said.textContent = say("That file could not be read: {}.", error.message);
    }
    pick.value = "";
  });
  gone.addEventListener("click", () => {
    if (!confirm(say("Delete all progress and answers in this browser?"))) return;
    unsaved.clear();
    store.erase();
    refill();
    said.textContent = say("Deleted.");
  });
  const last = [...document.querySelectorAll("main div.cell")].find(
    (cell) => cell.querySelector("pre")?.textContent.trim() === "checks.progress()",
  );
  if (last) {
    last.before(panel);
    last.hidden = true;
  } else document.querySelector("main article, main .bd-article")?.append(panel);
}

/** What another tab of this page wrote, in each editor that is not in use. */
function follow() {
  const state = store.load();
  for (const { exercise, field } of boxes.values()) {
    if (field === document.activeElement || unsaved.has(exercise.number)) continue;
    field.value = state.answers[exercise.number] ?? exercise.stub;
    fit(field);
    marked(exercise.number);
  }
  summary();
}

/** The editors anew from what is kept. */
function refill() {
  const state = store.load();
  for (const { exercise, field, verdict } of boxes.values()) {
    field.value = state.answers[exercise.number] ?? exercise.stub;
    verdict.replaceChildren();
    fit(field);
    marked(exercise.number);
  }
  summary();
}

page.exercises.forEach(build);
buildPanel();
summary();
addEventListener("course-progress", summary);
addEventListener("storage", follow);
addEventListener("pageshow", (event) => event.persisted && follow());
globalThis.courseAnswers = { python, store }; // for tests and the curious

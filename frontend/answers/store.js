// What a reader did, kept in this browser: answers as typed, what was solved, tried and guessed, where one stopped, questions.

const KEY = "course-progress";
const EMPTY = { version: 1, answers: {}, done: {}, guessed: {}, last: null, cards: {} };
let memory = null; // what holds where the browser keeps nothing
let trouble = "";

const plain = (value) => value && typeof value === "object" && !Array.isArray(value);

/** Progress from text; what does not fit is left out. */
export function read(text) {
  const found = structuredClone(EMPTY);
  const given = JSON.parse(text);
  if (!plain(given) || given.version !== 1) throw new Error("this is not a progress file of this course");
  for (const [number, value] of Object.entries(plain(given.answers) ? given.answers : {})) {
    if (/^\d\.\d+$/.test(number) && typeof value === "string" && value.length < 100_000) found.answers[number] = value;
  }
  for (const [number, value] of Object.entries(plain(given.done) ? given.done : {})) {
    if (/^\d\.\d+$/.test(number) && ["right", "wrong"].includes(value?.state))
      found.done[number] = {
        state: value.state,
        tries: Math.max(0, Number(value.tries) || 0),
        at: Number(value.at) || 0,
      };
  }
  for (const [number, value] of Object.entries(plain(given.guessed) ? given.guessed : {})) {
    if (/^\d\.\d+$/.test(number) && typeof value?.guess === "string")
      found.guessed[number] = { guess: value.guess.slice(0, 200), came: value.came === true };
  }
  for (const [id, value] of Object.entries(plain(given.cards) ? given.cards : {})) {
    if (/^[\w.-]{1,60}$/.test(id) && Number.isFinite(value?.due))
      found.cards[id] = {
        due: value.due,
        step: Math.max(0, Number(value.step) || 0),
        seen: Number(value.seen) || 0,
        at: Number(value.at) || 0,
      };
  }
  if (typeof given.last?.page === "string" && /^[\w./#-]+$/.test(given.last.page))
    found.last = {
      page: given.last.page,
      title: String(given.last.title ?? "").slice(0, 200),
      at: /^[\w-]+$/.test(given.last.at ?? "") ? given.last.at : "",
    };
  return found;
}

export function load() {
  if (memory) return memory;
  try {
    const text = localStorage.getItem(KEY);
    return text ? read(text) : structuredClone(EMPTY);
  } catch (error) {
    if (error.name === "SecurityError" || typeof localStorage === "undefined") {
      trouble = "forbidden";
      return (memory = structuredClone(EMPTY));
    }
    return structuredClone(EMPTY);
  }
}

/** Change what is kept. What the browser refuses is kept until the page is closed. */
export function change(edit) {
  const state = load();
  edit(state);
  if (memory) memory = state;
  try {
    localStorage.setItem(KEY, JSON.stringify(state));
    if (trouble === "full") [trouble, memory] = ["", null];
  } catch (error) {
    trouble = error.name === "QuotaExceededError" ? "full" : "forbidden";
    memory = state;
  }
  dispatchEvent(new Event("course-progress"));
  return state;
}

/** Why nothing is kept: "full", "forbidden", or "" where all is. */
export const problem = () => (load(), trouble);

export function erase() {
  memory = trouble === "forbidden" ? structuredClone(EMPTY) : null;
  try {
    localStorage.removeItem(KEY);
  } catch { /* nothing was kept */ }
  dispatchEvent(new Event("course-progress"));
}

export const exported = () => JSON.stringify(load(), null, 1);

/** Take over a file: what was right stays right. */
export function imported(text) {
  const other = read(text);
  change((state) => {
    for (const [number, value] of Object.entries(other.done))
      if (state.done[number]?.state !== "right") state.done[number] = value;
    for (const [id, value] of Object.entries(other.cards))
      if (!(state.cards[id]?.seen > value.seen)) state.cards[id] = value;
    state.answers = { ...other.answers, ...state.answers };
    state.guessed = { ...other.guessed, ...state.guessed };
    state.last ??= other.last;
  });
}

/** Of a chapter's ten: how many are right, tried, guessed right. */
export function counts(chapter, state = load()) {
  const own = Object.entries(state.done).filter(([number]) => number.startsWith(`${chapter}.`));
  const guesses = Object.entries(state.guessed).filter(([number]) => number.startsWith(`${chapter}.`));
  return {
    right: own.filter(([, value]) => value.state === "right").length,
    tried: own.length,
    guesses: guesses.length,
    came: guesses.filter(([, value]) => value.came).length,
  };
}

globalThis.addEventListener?.("storage", (event) => event.key === KEY && dispatchEvent(new Event("course-progress")));

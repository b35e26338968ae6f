// Questions that come back: a lesson asks four where they matter, and the reader marks them. Each is asked again in the next
// lesson, in the one after it, and after a week. Dates are kept in this browser; all questions can be exported for Anki.
import { change, load } from "./store.js";
import { say } from "./words.js";

const DAY = 86_400_000;
const AFTER = [1, 1, 3, 7, 30, 90]; // days until a question comes back, by how often in a row it was known
const BY_LESSON = 2; // until it was known so often, a later lesson asks it even before its day
const LAST_LESSON = 7;

/** What becomes of a card that was marked in a lesson (0: on the front page). */
export function marked(card, knew, now, lesson) {
  const step = knew ? Math.min((card?.step ?? 0) + 1, AFTER.length - 1) : 0;
  return { step, due: now + AFTER[step] * DAY, seen: now, at: lesson || card?.at || 0 };
}

/** Whether a card of one lesson is to be asked in another (0: on the front page, where only its day counts). */
export function isDue(card, from, lesson, now) {
  if (!card || now - card.seen < 60_000) return false;
  return now >= card.due || (card.step <= BY_LESSON && lesson > (card.at || from));
}

/** All questions as Anki reads them: a line each with its own id, question, answer and tag, apart by tabs. */
export function anki(questions) {
  const field = (html) => {
    const text = html.replace(/<span class="math[^>]*>([^<]*)<\/span>/g, "$1").replace(/[\t\n]+/g, " ");
    return text.includes('"') ? `"${text.replaceAll('"', '""')}"` : text; // quotation marks would be taken for those of a field
  };
  const head = [
    "#separator:tab",
    "#html:true",
    "#guid column:1",
    "#tags column:4",
    "#deck:Connection Bottlenecks in Attention",
  ];
  const line = ({ id, chapter, ask, answer }) =>
    [`connection-bottlenecks-${id}`, field(ask), field(answer), `connection-bottlenecks::${chapter}`].join(
      "\t",
    );
  return `${[...head, ...questions.map(line)].join("\n")}\n`;
}

function when({ step, due }, lesson, now) {
  const days = Math.round((due - now) / DAY);
  const day = days <= 1 ? say("tomorrow") : say("in {} days", days);
  return step <= BY_LESSON && lesson && lesson < LAST_LESSON
    ? say("We ask this question again in the next lesson, or {}.", day)
    : say("We ask this question again {}.", day);
}

function buttons(id, lesson, done) {
  const row = document.createElement("div");
  row.className = "answer-row card-marks";
  const said = document.createElement("span");
  said.className = "answer-state";
  said.setAttribute("role", "status");
  for (const [label, knew] of [["I knew it", true], ["Not yet", false]]) {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = say(label);
    button.addEventListener("click", () => {
      const now = Date.now();
      let card;
      change((state) => (card = state.cards[id] = marked(state.cards[id], knew, now, lesson)));
      said.textContent = when(card, lesson, now);
      done?.();
    });
    row.append(button);
  }
  row.append(said);
  return row;
}

function exportButton(questions) {
  const out = document.createElement("button");
  out.type = "button";
  out.textContent = say("Export for Anki");
  out.addEventListener("click", () => {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([anki(questions)], { type: "text/plain" }));
    link.download = "connection-bottlenecks-anki.txt";
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  });
  const row = document.createElement("p");
  row.className = "answer-row";
  row.append(out);
  return row;
}

async function begin() {
  const lesson = Number(location.pathname.match(/\/(\d)-[\w-]+\/lesson\.html$/)?.[1] ?? 0);
  const last = document.querySelector(".returning-questions"); // a lesson has it
  if (lesson && !last) return;
  for (const fold of document.querySelectorAll("main details[data-question]"))
    fold.append(buttons(fold.dataset.question, lesson));
  const { cards } = load();
  if (!lesson && !Object.keys(cards).length) return;
  const script = document.querySelector("script[src$='answers/cards.js']");
  const file = document.documentElement.lang.startsWith("zh") ? "questions.zh.json" : "questions.json";
  const questions = await (await fetch(new URL(file, script.src))).json();
  last?.append(exportButton(questions));
  const due = questions.filter(
    (each) => isDue(cards[each.id], each.chapter, lesson, Date.now()) && each.chapter !== lesson,
  );
  const before = document.querySelector(
    "main article section > section, main .bd-article section > section, main article section > :not(h1, .copy-page, .go-on)",
  );
  if (!due.length || !before) return;
  const box = document.createElement("aside");
  box.className = "answer-cards";
  box.setAttribute("aria-label", say("Questions that come back"));
  before.before(box);
  ask(box, due, 0, lesson);
}

function ask(box, due, k, lesson) {
  const each = due[k];
  box.innerHTML =
    "<h3></h3><p class=from></p><div class=question></div><details><summary></summary><div class=solution></div></details>";
  box.querySelector("h3").textContent =
    `${say("Questions that come back")} (${say("Question {} of {}", k + 1, due.length)})`;
  box.querySelector(".from").textContent = say("From lesson {}", each.chapter);
  box.querySelector(".question").innerHTML = each.ask; // written at build time, by the course
  box.querySelector("summary").textContent = say("Show the answer");
  box.querySelector(".solution").innerHTML = each.answer;
  const next = k + 1 < due.length ? () => setTimeout(() => ask(box, due, k + 1, lesson), 900) : undefined;
  box.querySelector("details").append(buttons(each.id, lesson, next));
  if (k) box.querySelector("summary").focus(); // the button that was pressed is gone
  globalThis.MathJax?.typesetPromise?.([box]);
}

if (typeof document !== "undefined") begin();

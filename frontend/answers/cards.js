// Questions that come back: a lesson's own are marked by the reader, and asked again one and two lessons later and after a
// week. Dates are kept in this browser; all questions can be exported for Anki.
import { change, load } from "./store.js";
import { say } from "./words.js";

const DAY = 86_400_000;
const AFTER = [1, 1, 3, 7, 30, 90]; // days until a question comes back, by how often in a row it was known
const LATER = [0, 1, 2]; // or lessons later, whichever is first

/** What becomes of a card that was marked. */
export function marked(card, knew, now) {
  const step = knew ? Math.min((card?.step ?? 0) + 1, AFTER.length - 1) : 0;
  return { step, due: now + AFTER[step] * DAY, seen: now };
}

/** Whether a card is to be asked on the lesson of a chapter. */
export function isDue(card, from, chapter, now) {
  if (!card || now - card.seen < 60_000) return false;
  return now >= card.due || (card.step > 0 && card.step < LATER.length && chapter >= from + LATER[card.step]);
}

/** All questions as Anki reads them: a line each, question and answer apart by a tab. */
export function anki(questions) {
  const field = (html) => html.replace(/<span class="math[^>]*>([^<]*)<\/span>/g, "$1").replace(/[\t\n]+/g, " ");
  return ["#separator:tab", "#html:true", "#tags column:3", ...questions.map((each) => [field(each.ask), field(each.answer), `connection-bottlenecks::${each.chapter}`].join("\t"))].join("\n");
}

function when(due, now) {
  const days = Math.round((due - now) / DAY);
  return days < 1 ? say("later today") : say("in {} days", days);
}

function buttons(id, done) {
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
      change((state) => (card = state.cards[id] = marked(state.cards[id], knew, now)));
      said.textContent = say("Asked again {}.", when(card.due, now));
      done?.();
    });
    row.append(button);
  }
  row.append(said);
  return row;
}

async function begin() {
  const own = document.querySelector(".three-questions");
  const chapter = Number(location.pathname.match(/\/(\d)-[\w-]+\/lesson\.html$/)?.[1]);
  if (!own || !chapter) return;
  for (const fold of own.querySelectorAll("details[data-question]")) fold.append(buttons(fold.dataset.question));
  const script = document.querySelector("script[src$='answers/cards.js']");
  const questions = await (await fetch(new URL("questions.json", script.src))).json();
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
  const last = document.createElement("p");
  last.className = "answer-row";
  last.append(out);
  own.append(last);
  const { cards } = load();
  const due = questions.filter((each) => isDue(cards[each.id], each.chapter, chapter, Date.now()) && each.chapter !== chapter);
  if (!due.length) return;
  const box = document.createElement("aside");
  box.className = "answer-cards";
  box.setAttribute("aria-label", say("Questions that come back"));
  own.before(box);
  ask(box, due, 0);
}

function ask(box, due, k) {
  const each = due[k];
  box.innerHTML = "<h3></h3><p class=from></p><div class=question></div><details><summary></summary><div class=solution></div></details>";
  box.querySelector("h3").textContent = `${say("Questions that come back")} (${say("Question {} of {}", k + 1, due.length)})`;
  box.querySelector(".from").textContent = say("From lesson {}", each.chapter);
  box.querySelector(".question").innerHTML = each.ask; // written at build time, by the course
  box.querySelector("summary").textContent = say("Show the answer");
  box.querySelector(".solution").innerHTML = each.answer;
  const next = k + 1 < due.length ? () => setTimeout(() => ask(box, due, k + 1), 900) : undefined;
  box.querySelector("details").append(buttons(each.id, next));
  globalThis.MathJax?.typesetPromise?.([box]);
}

if (typeof document !== "undefined") begin();

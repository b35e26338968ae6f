// Rings of progress beside the chapters, on every page, and a word on where one stopped on the front page.
import { counts, load } from "./store.js";
import { say } from "./words.js";

const own = document.querySelector("script[src$='answers/progress.js']");
const root = new URL(own.dataset.root, location.href);
const all = JSON.parse(own.dataset.counts); // exercises by chapter
const AROUND = 2 * Math.PI * 8;

function ring(right, tried, of) {
  const label = say("{} of {} exercises right", right, of);
  const holder = document.createElement("span");
  holder.className = "progress-holder";
  holder.innerHTML = `<svg class="progress-ring" viewBox="0 0 20 20" role="img"><title></title><circle cx="10" cy="10" r="8"/><circle class="share" cx="10" cy="10" r="8" transform="rotate(-90 10 10)" stroke-dasharray="${(right / of) * AROUND} ${AROUND}"/></svg>`;
  holder.querySelector("title").textContent = label;
  holder.title = label;
  holder.dataset.tried = tried;
  return holder;
}

function draw() {
  for (const old of document.querySelectorAll(".progress-holder")) old.remove();
  const state = load();
  for (const link of document.querySelectorAll(".bd-links a, .bd-sidebar-primary nav a")) {
    const chapter = link.href.replace(/#.*$/, "").match(/\/(\d)-[\w-]+\/(?:lesson|exercises)\.html$/)?.[1];
    if (!all[chapter]) continue;
    const { right, tried } = counts(chapter, state);
    if (tried) link.append(ring(right, tried, all[chapter]));
  }
  const front = document.querySelector("main article, main .bd-article");
  const welcome = /\/(index|welcome)\.html$|\/$/.test(location.pathname) && state.last;
  if (front && welcome && !document.querySelector(".go-on")) {
    const line = document.createElement("p");
    line.className = "go-on";
    const link = document.createElement("a");
    link.href = new URL(`${state.last.page}.html${state.last.at ? `#${state.last.at}` : ""}`, root).href;
    link.textContent = state.last.title;
    const [before, after] = say("Go on where you stopped: {}", "\u0000").split("\u0000");
    line.append(before, link, after ?? "");
    front.prepend(line);
  }
}

draw();
addEventListener("course-progress", draw);

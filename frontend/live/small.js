// The counter and the copiers of chapter 4, live: letters or a length in, answer, margin and distance out.
import { prefixes, unpacked } from "./decoder.js";
import { say } from "./pictures.js";

const root = document.getElementById("small");
const escape = (text) =>
  String(text).replace(/[&<>"]/g, (c) => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" })[c]);
const MOST = 64;
let models, shown = { model: "", letters: "", n: 12, ask: "last" };

/** Letters again and again, up to a length. */
const string = (letters, n) => letters.repeat(Math.ceil(n / letters.length)).slice(0, n);
const right = (model, text, ask) =>
  model.task === "RunningCount"
    ? String([...text].filter((c) => c === "y").length)
    : ask === "first"
      ? text[0]
      : text.at(-1);

/** Answer, margin and distance after each of the first `MOST` letters, and one more for the distance. */
let kept = {};
function curve({ model: name, letters, ask }) {
  const key = `${name} ${letters} ${ask}`;
  if (kept.key === key) return kept.rows;
  const model = models[name], whole = string(letters, MOST + 1);
  const found = prefixes(model, whole, model.task === "RunningCount" ? null : ask);
  const rows = found.slice(0, MOST).map(({ logits, state }, k) => {
    const text = whole.slice(0, k + 1), wanted = model.vocabulary.indexOf(right(model, text, ask));
    const best = logits.indexOf(Math.max(...logits));
    const others = logits.filter((_, id) => id !== wanted);
    let apart = 0;
    for (let i = 0; i < state.length; i += 1) apart += Math.abs(state[i] - found[k + 1].state[i]);
    return {
      text,
      answer: model.vocabulary[best],
      right: right(model, text, ask),
      margin: wanted < 0 ? NaN : logits[wanted] - Math.max(...others),
      distance: apart,
    };
  });
  kept = { key, rows };
  return rows;
}

const plot = (values, n, colour, title, room, trained) => {
  const finite = values.filter(Number.isFinite),
    low = Math.min(0, ...finite),
    high = Math.max(0.1, ...finite);
  const [l, r, t, b] = [52, room - 12, 26, 190],
    x = (k) => l + ((k - 1) / (MOST - 1)) * (r - l),
    y = (v) => b - ((v - low) / (high - low)) * (b - t);
  let pen = "M";
  const path = values
    .map((v, k) =>
      Number.isFinite(v)
        ? `${pen}${((pen = "L"), x(k + 1).toFixed(1))} ${y(v).toFixed(1)}`
        : ((pen = "M"), ""),
    )
    .join("");
  const dot = Number.isFinite(values[n - 1])
    ? `<circle cx="${x(n)}" cy="${y(values[n - 1])}" r="7" fill="var(--${colour})"/>`
    : "";
  return `<svg viewBox="0 0 ${room} 232" style="max-width:${room}px" role="img" aria-label="${escape(title)} by length; at ${n} letters ${say(values[n - 1])}">
<rect x="${l}" y="${t}" width="${x(Math.min(trained, MOST)) - l}" height="${b - t}" fill="var(--wash)"/>
<line class="axis" x1="${l}" x2="${r}" y1="${y(0)}" y2="${y(0)}"/><text x="${l}" y="15">${escape(title)}</text>
${[low, high].map((v) => `<text class="quiet" x="${l - 6}" y="${y(v) + 5}" text-anchor="end">${say(v)}</text>`).join("")}
${[1, 16, 32, 48, 64].map((k) => `<text class="quiet" x="${x(k)}" y="${b + 18}" text-anchor="middle">${k}</text>`).join("")}<text class="quiet" x="${(l + r) / 2}" y="${b + 38}" text-anchor="middle">letters (shaded: trained on 1 to ${trained})</text>
<line class="grid" x1="${x(n)}" x2="${x(n)}" y1="${t}" y2="${b}"/><path d="${path}" fill="none" stroke="var(--${colour})" stroke-width="2.5"/>${dot}</svg>`;
};

function draw() {
  const model = models[shown.model], rows = curve(shown), now = rows[shown.n - 1];
  root.querySelector(".small-ask").hidden = model.task === "RunningCount";
  root.querySelector("[data-small=n]").value = shown.n;
  root.querySelector(".small-n").textContent = `${shown.n} letters`;
  const wrong = rows.find((each) => each.answer !== each.right);
  const outside = Number.isNaN(now.margin) ? ", for which it has no token" : "";
  root.querySelector(".live-says").textContent =
    `${now.text.length > 24 ? `${now.text.slice(0, 22)}…` : now.text}: the model answers ${now.answer}, and the right answer is ${now.right}${outside}. ${wrong ? `Its first wrong answer is at ${wrong.text.length} letters.` : `It is right at every length up to ${MOST}.`}`;
  const room = Math.min(640, Math.max(300, root.querySelector(".small-plots").clientWidth));
  const width = room > 620 || root.clientWidth < 700 ? room : Math.floor(root.clientWidth / 2) - 12;
  root.querySelector(".small-plots").innerHTML =
    plot(
      rows.map((each) => each.margin),
      shown.n,
      "blue",
      "margin of the right answer (logits)",
      width,
      model.lengths[1],
    ) +
    plot(
      rows.map((each) => each.distance),
      shown.n,
      "orange",
      "distance to the state one letter later (L1)",
      width,
      model.lengths[1],
    );
  root.dataset.drawn = shown.n;
}

function choose(name) {
  shown = { ...shown, model: name, letters: models[name].task === "RunningCount" ? "xy" : "1" };
  root.querySelector("[data-small=letters]").value = shown.letters;
}

async function begin() {
  root.classList.add("live-app");
  const style = document.createElement("link");
  style.rel = "stylesheet";
  style.href = new URL("live.css", import.meta.url).href;
  document.head.append(style);
  const answer = await fetch(new URL("small.json", import.meta.url));
  models = Object.fromEntries(
    Object.entries(await answer.json()).map(([name, written]) => [name, unpacked(written)]),
  );
  root.innerHTML = `<div class="live-row"><label>model <select data-small="model">${Object.entries(models)
    .map(([name, { what }]) => `<option value="${name}">${escape(what)}</option>`)
    .join("")}</select></label>
<label>letters <input type="text" class="short" data-small="letters" maxlength="${MOST}" autocomplete="off" spellcheck="false"></label>
<label class="small-ask">asked for <select data-small="ask"><option value="last">the last one</option><option value="first">the first one</option></select></label></div>
<div class="live-row"><label style="flex:1 1 20rem">length <input type="range" data-small="n" min="1" max="${MOST}" style="flex:1 1 10rem"> <output class="small-n"></output></label></div>
<p class="live-says" aria-live="polite"></p><div class="live-both small-plots"></div><p class="live-error" role="alert"></p>`;
  const ground = () => {
    const theme = document.documentElement.dataset.theme;
    root.dataset.ground = (theme ? theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches)
      ? "dark"
      : "light";
  };
  ground();
  new MutationObserver(ground).observe(document.documentElement, { attributes: true, attributeFilter: ["data-theme"] });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", ground);
  root.addEventListener("input", ({ target }) => {
    const name = target.dataset.small, error = root.querySelector(".live-error");
    error.textContent = "";
    if (name === "model") choose(target.value);
    if (name === "ask") shown.ask = target.value;
    if (name === "n") shown.n = Number(target.value);
    if (name === "letters") {
      const known = models[shown.model].task === "RunningCount" ? "xy" : "01";
      if (!target.value || [...target.value].some((c) => !known.includes(c))) {
        error.textContent = `Type only the letters ${known[0]} and ${known[1]}. They are repeated up to the length.`;
        return;
      }
      shown.letters = target.value;
      if (target.value.length > 1) shown.n = Math.max(shown.n, target.value.length);
    }
    draw();
  });
  addEventListener("resize", draw);
  // a link may say what is shown: #model=copying&letters=0111&n=20&ask=first
  const asked = new URLSearchParams(location.hash.slice(1)), letters = asked.get("letters") ?? "";
  choose(Object.hasOwn(models, asked.get("model")) ? asked.get("model") : Object.keys(models)[0]);
  root.querySelector("[data-small=model]").value = shown.model;
  if (
    letters &&
    letters.length <= MOST &&
    [...letters].every((c) => (models[shown.model].task === "RunningCount" ? "xy" : "01").includes(c))
  )
    shown.letters = letters;
  shown.n = Math.min(MOST, Math.max(1, Math.round(Number(asked.get("n"))) || shown.n));
  shown.ask = asked.get("ask") === "first" ? "first" : "last";
  root.querySelector("[data-small=letters]").value = shown.letters;
  root.querySelector("[data-small=ask]").value = shown.ask;
  draw();
}

if (location.protocol !== "file:")
  begin().catch(() => {
    root.textContent = "The small models could not be loaded, because small.json is not beside this page.";
  });

// "Train it here": a decoder learns in the reader's browser; a part is exchanged, and it learns again.
import { engine } from "./engine.js";
import { ASKED_IN_CHINESE, bestRate, entryOf, LEARNED, LENGTHS, PARTS, RATE, RATES, refused, STEPS, TASKS, TRAINED } from "./race.js";

/** Whether the reader comes from the Chinese edition, or has a Chinese browser. */
const CHINESE = /\/zh\//.test(document.referrer) || navigator.language?.startsWith("zh");
const root = document.getElementById("train"), KEPT = 4, FAR = 512;
document.fonts.forEach((face) => (CHINESE || !face.family.includes("Everywhere")) && void face.load().catch(() => 0)); // at once, since the page goes on without a network
const escape = (text) =>
  String(text).replace(/[&<>"]/g, (c) => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" })[c]);
const $ = (selector) => root.querySelector(selector);
/** What is offered at once; every other design is behind "more". */
const CHOICES = [
  {
    name: "RoPE",
    about: "Queries and keys rotate according to their positions, as in most language models.",
    design: { positions: "RoPE", window: 0, map: "softmax" },
  },
  {
    name: "No positions (NoPE)",
    about: "Only the causal mask shows which tokens came earlier.",
    design: { positions: "none", window: 0, map: "softmax" },
  },
  {
    name: "Local RoPE, global NoPE",
    about: "Layer 1 sees the last 8 tokens with RoPE, and layer 2 sees all tokens without positions.",
    design: { positions: "mixed", window: 8, map: "softmax" },
  },
];
const NAMES = { positions: "positions", window: "window", map: "attention weights" };
const begin = { task: "retrieval", positions: "RoPE", window: 0, map: "softmax", seed: 0, rate: "best" };
let state = { ...begin }, seeds = {}, busy = false, ask = null, act = null, waiting = 0, measured = 0;
/** @type {number | ""} */
let guess = "";
/** @type {any} */
let now = null; // the run that is shown
/** @type {any[]} */
let runs = []; // those that ended, the newest first; the table, which Back and a reload leave as it is
const TABLE = "trained-here";

/** The runs of this tab before the page was left or reloaded. Their weights are gone. */
function before() {
  try {
    const found = JSON.parse(sessionStorage.getItem(TABLE) ?? "[]");
    return found
      .filter(({ run, done }) => Object.hasOwn(TASKS, run.task) && done.right.length)
      .map((each) => ({ ...each, losses: [], looks: [], more: [], picture: null }));
  } catch {
    return []; // a browser that keeps nothing, or what another version of the page kept
  }
}

function keep() {
  const table = runs.map(({ run, guess: guessed, done: { learned, stopped, spent, right } }) => ({
    run,
    guess: guessed,
    done: { learned, stopped, spent, right },
  }));
  try {
    sessionStorage.setItem(TABLE, JSON.stringify(table));
  } catch {} // then it is gone with the page
}

/** The learning rate that is chosen, as a number. */
const rateOf = ({ task, rate, ...parts }) => (rate === "best" ? bestRate(task, parts) : Number(rate));
/** The rate of a run as a link has it. */
const linkedRate = ({ task, design, rate }) =>
  rate === bestRate(task, design) || !RATES.includes(rate) ? "best" : rate;
const designOf = ({ positions, window, map }) => ({ positions, window, map });
const named = ({ positions, window, map }) =>
  [
    positions === "none" ? "no positions" : PARTS.positions[positions],
    window ? "window" : "",
    map === "softmax" ? "" : PARTS.map[map],
  ]
    .filter(Boolean)
    .join(", ");
const shareOf = (x) => x.toFixed(2),
  say = (x) => String(Number(x.toPrecision(2)));

/** What a link says, where it makes sense. */
function fromLink(hash) {
  const asked = new URLSearchParams(hash.slice(1)), found = { ...begin };
  if (Object.hasOwn(TASKS, asked.get("task"))) found.task = asked.get("task");
  for (const part of Object.keys(PARTS))
    if (Object.hasOwn(PARTS[part], asked.get(part)))
      found[part] = part === "window" ? Number(asked.get(part)) : asked.get(part);
  const seed = Number(asked.get("seed"));
  if (Number.isInteger(seed) && seed >= 0 && seed < 1e6) found.seed = seed;
  if (RATES.includes(Number(asked.get("rate")))) found.rate = asked.get("rate");
  return refused(found) ? { ...found, ...designOf(begin) } : found;
}
const toLink = (each) => `#${new URLSearchParams(Object.keys(begin).map((name) => [name, String(each[name])]))}`;

// Pictures

const frame = (room, high, alt, inside) =>
  `<svg viewBox="0 0 ${room} ${high}" style="max-width:${room}px" role="img" aria-label="${escape(alt)}">${inside}</svg>`;
const path = (points, colour, width = 2.5, more = "") =>
  points.length
    ? `<path d="M${points.map(([x, y]) => `${x.toFixed(1)} ${y.toFixed(1)}`).join("L")}" fill="none" stroke="var(--${colour})" stroke-width="${width}" stroke-linejoin="round" ${more}/>`
    : "";
const text = (x, y, words, anchor = "start", kind = "quiet") =>
  `<text class="${kind}" x="${x}" y="${y}" text-anchor="${anchor}">${escape(words)}</text>`;
const level = (l, r, y, words) =>
  `<line class="grid" x1="${l}" x2="${r}" y1="${y}" y2="${y}"/>${text(l - 6, y + 5, words, "end")}`;
/** The accuracy of guessing, as a dashed line that says what it is. */
const byChance = (l, r, y, chance) =>
  `<line class="axis" stroke-dasharray="3 4" x1="${l}" x2="${r}" y1="${y}" y2="${y}"/>` +
  text(r, y - 6, `chance (guessing): ${shareOf(chance)}`, "end", "quiet over");
const ofSeeds = ({ task, design }) => seeds[task]?.[entryOf(design)] ?? [];
const sameRun = (a, b) =>
  JSON.stringify([a.run.task, a.run.design, a.run.rate, a.done.right]) ===
  JSON.stringify([b.run.task, b.run.design, b.run.rate, b.done.right]);

/** Loss, right at 16 and at 64, by step; dots are where our seeds ended. */
function learning(room) {
  const { run, losses, looks } = now,
    [l, r] = [44, room - 12],
    most = Math.max(...[200, 500, STEPS].filter((n, k, all) => k === 0 || losses.length > all[k - 1]));
  const x = (step) => l + (Math.min(step, most) / most) * (r - l),
    top = Math.log(TASKS[run.task].vocabulary.length),
    dots = now.done ? ofSeeds(run) : [];
  const yl = (v) => 108 - (Math.min(v, top) / top) * 86,
    yr = (v) => 272 - v * 120;
  const means = losses.map((_, k) => [
    x(k + 1),
    yl(losses.slice(Math.max(0, k - 4), k + 1).reduce((a, b) => a + b, 0) / Math.min(5, k + 1)),
  ]);
  const last = looks.at(-1),
    said = last
      ? `loss ${say(losses.at(-1))}, accuracy ${shareOf(last.now[0])} at 16 and ${shareOf(last.now[1])} at 64`
      : "nothing yet";
  const rings = dots
    .filter(([steps]) => steps <= most)
    .map(
      ([steps, , , far]) =>
        `<circle cx="${x(steps).toFixed(1)}" cy="${yr(far).toFixed(1)}" r="4" fill="none" stroke="var(--green)" opacity=".6"/>`,
    )
    .join("");
  return frame(
    room,
    320,
    `Training after ${losses.length} steps: ${said}`,
    text(l, 14, "loss, mean of 5 steps") +
      level(l, r, yl(0), "0") +
      level(l, r, yl(top), say(top)) +
      path(means, "orange") +
      text(l, 142, "accuracy at 16", "start", "train-16") +
      text(l + 108, 142, "and at 64", "start", "train-64") +
      text(
        l + 184,
        142,
        dots.length ? `○ our seeds${run.rate === RATE ? "" : `, rate ${RATE}`}` : "",
      ) +
      [0, 0.5, 1].map((v) => level(l, r, yr(v), String(v))).join("") +
      byChance(l, r, yr(TASKS[run.task].chance), TASKS[run.task].chance) +
      path(
        looks.map((each) => [x(each.steps), yr(each.now[0])]),
        "blue",
      ) +
      path(
        looks.map((each) => [x(each.steps), yr(each.now[1])]),
        "green",
      ) +
      rings +
      [0, most / 2, most].map((step) => text(x(step), 292, String(step), "middle")).join("") +
      text((l + r) / 2, 312, "steps of training", "middle"),
  );
}

/** Where the chart of lengths lies in its room, and where a length and an accuracy lie in it. */
function plane(room) {
  const high = room > 700 ? 400 : 306,
    [l, r, t, b] = [44, room - 20, 26, high - 46];
  const x = (n) => l + (Math.log2(Math.min(n, FAR) / 16) / 5) * (r - l),
    y = (v) => b - v * (b - t);
  return { high, l, r, t, b, x, y };
}

/** What will stand in the empty chart, and the length for which the reader guesses. */
function waits({ l, r, t, b, x, y }, chance) {
  const middle = (l + r) / 2,
    top = y(chance > 0.5 ? 0.3 : 0.78), // off the dashed line
    words = busy
      ? ["The accuracy at each length", "appears here when training ends."]
      : ["Press Train: the accuracy of your", "decoder appears here, length by length."];
  const asked = guess === "" && !busy ? text(x(64), y(0.43), "your guess?", "middle", "guess over") : "";
  return (
    `<line class="guess" stroke-dasharray="2 5" x1="${x(64)}" x2="${x(64)}" y1="${t}" y2="${b}"/>` +
    asked +
    words.map((line, k) => text(middle, top + 20 * k, line, "middle", "quiet over")).join("")
  );
}

/** A tap on the empty chart is a guess, too. */
function tapped(svg, { clientY }) {
  const { high, t, b } = plane(svg.viewBox.baseVal.width),
    { top, height } = svg.getBoundingClientRect(),
    accuracy = (b - ((clientY - top) / height) * high) / (b - t);
  guess = Math.min(1, Math.max(0, Math.round(20 * accuracy) / 20));
  $("[data-guess]").value = guess;
  draw();
}

/** Right by length: the reader's guess and runs, and, once there is one to lay among them, our seeds. */
function lengths(room) {
  const shown = now?.done ? now : null,
    about = now?.run ?? { task: state.task, design: designOf(state) },
    all = ofSeeds(about),
    threads = shown ? all : [],
    place = plane(room),
    { high, l, r, b, x, y } = place,
    low = (n) => Math.max(16, n);
  const lines = threads.map(([, ...scores]) =>
    path(
      scores.map((v, k) => [x(LENGTHS[k]), y(v)]),
      "quiet",
      1,
      'opacity=".55"',
    ),
  );
  const others = runs.filter((each) => each !== shown && each.run.task === about.task),
    colours = ["orange", "purple", "green"];
  const before = others.map((each, k) =>
    path(
      each.done.right.map(({ n, share }) => [x(n), y(share)]),
      colours[k % 3],
      2,
      'stroke-dasharray="7 4"',
    ),
  );
  const own = shown ? [...shown.done.right, ...shown.more].sort((a, c) => a.n - c.n) : [];
  const dots = own
    .map(
      ({ n, share }) =>
        `<circle cx="${x(low(n)).toFixed(1)}" cy="${y(share).toFixed(1)}" r="${shown.at === n ? 7 : 4}" fill="var(--blue)"/>`,
    )
    .join("");
  const guessed = now ? now.guess : guess,
    bet =
      guessed === ""
        ? ""
        : `<path d="M${x(64) - 7} ${y(guessed) - 7}l14 14m0-14l-14 14" stroke="var(--orange)" stroke-width="3"/>`;
  const said = own.map(({ n, share }) => `${shareOf(share)} at ${n}`).join(", ") || "not trained yet";
  const key = [
    all.length
      ? `<span>${shown ? "╱ " : ""}${all.length} seeds of the race${shown ? "" : " (drawn when your run ends)"}</span>`
      : "<span>the race has no run with these parts</span>",
    bet && '<span style="color:var(--orange)">× your guess</span>',
    shown ? `<span style="color:var(--blue)">━ yours: ${escape(named(shown.run.design))}</span>` : "",
    ...others.map(
      (each, k) =>
        `<span style="color:var(--${colours[k % 3]})">╌ earlier: ${escape(named(each.run.design))}</span>`,
    ),
  ].join("");
  return `${frame(
    room,
    high,
    `Accuracy by length: ${said}`,
    text(l, 14, `accuracy (learned on rows of up to ${TRAINED} ${TASKS[about.task].unit})`) +
      [0, 0.5, 1].map((v) => level(l, r, y(v), String(v))).join("") +
      (shown ? "" : waits(place, TASKS[about.task].chance)) +
      byChance(l, r, y(TASKS[about.task].chance), TASKS[about.task].chance) +
      lines.join("") +
      before.join("") +
      path(
        own.filter(({ n }) => n >= 16).map(({ n, share }) => [x(n), y(share)]),
        "blue",
        3,
      ) +
      dots +
      bet +
      [...LENGTHS, 256, FAR].map((n) => text(x(n), b + 20, String(n), "middle")).join("") +
      text((l + r) / 2, b + 40, `length of the row, in ${TASKS[about.task].unit}`, "middle"),
  )}<div class="live-key">${key}</div>`;
}

/** The row in words, its middle left out where it is long; then a layer on it, where a frame marks the place that says the answer. */
function maps(picture, { design, task }) {
  const near = (k) => picture.n <= 40 || k < 6 || Math.abs(k - picture.source) < 3 || k >= picture.n - 8;
  const row = picture.words.map((word, k) =>
    k === picture.source ? `<b>${escape(word)}</b>` : near(k) ? escape(word) : near(k - 1) ? "…" : "",
  );
  $(".train-row").innerHTML =
    `The row: ${row.filter(Boolean).join(" ")}. The decoder answers ${escape(picture.answer)}, and the right answer is ${escape(picture.right)}.`;
  const { n, source } = picture,
    box = $(".train-maps"),
    at = (layer) => [0, 1, 2, 3].map((m) => picture.maps[layer][((n - 1) * 4 + m) * n + source]);
  const asked = $("[data-at=layer]").value,
    layer = asked ? Number(asked) : Number(Math.max(...at(1)) >= Math.max(...at(0))),
    all = picture.maps[layer],
    shares = at(layer);
  const two = design.map === "difference" && (design.positions !== "mixed" || layer === 1),
    side = Math.max(130, Math.min(220, Math.floor(box.clientWidth / (box.clientWidth > 700 ? 4 : 2)) - 16)),
    scale = devicePixelRatio || 1;
  box.dataset.shares = shares.map(shareOf).join(" ");
  $(".train-layer").textContent =
    `The frame marks ${TASKS[task].says} at the last question. A darker cell is more attention, compared with an equal share. This is layer ${layer + 1}.`;
  if (box.children.length !== 4)
    box.innerHTML = [0, 1, 2, 3]
      .map(() => '<figure><canvas role="img"></canvas><figcaption></figcaption></figure>')
      .join("");
  const [r, g, b] = [1, 3, 5].map((k) =>
    parseInt(
      getComputedStyle(root)
        .getPropertyValue("--blue")
        .trim()
        .slice(k, k + 2),
      16,
    ),
  );
  [...box.children].forEach((figure, m) => {
    const canvas = figure.querySelector("canvas"), cell = Math.max(1, Math.floor((side * scale) / n));
    canvas.width = canvas.height = cell * n;
    canvas.style.width = canvas.style.height = `${side}px`;
    const pen = canvas.getContext("2d"), image = pen.createImageData(cell * n, cell * n);
    for (let i = 0; i < cell * n; i += 1) for (let j = 0; j < cell * n; j += 1) {
      const w = all[(Math.floor(i / cell) * 4 + m) * n + Math.floor(j / cell)], o = 4 * (i * cell * n + j);
      image.data.set([r, g, b, 255 * Math.sqrt(Math.min(1, w * Math.max(1, n / 20)))], o);
    }
    pen.putImageData(image, 0, 0);
    pen.strokeStyle = getComputedStyle(root).getPropertyValue("--orange").trim();
    pen.lineWidth = Math.max(2, cell / 4);
    const edge = Math.max(cell, 6 * scale);
    pen.strokeRect(
      Math.max(1, source * cell + (cell - edge) / 2),
      Math.max(1, Math.min(cell * n - edge - 1, (n - 1) * cell + (cell - edge) / 2)),
      edge,
      edge,
    );
    const name = two ? `head ${(m >> 1) + 1}, map ${(m % 2) + 1}` : `head ${m + 1}`;
    canvas.setAttribute(
      "aria-label",
      `${name}: ${shareOf(shares[m])} of the last question's attention on ${TASKS[task].says}`,
    );
    figure.querySelector("figcaption").textContent = `${name}: ${shareOf(shares[m])} on ${TASKS[task].says}`;
  });
}

function draw() {
  const box = $(".train-plots"),
    wide = box.clientWidth,
    both = Boolean(now?.losses.length) && wide > 760,
    room = Math.max(280, both ? Math.floor(wide / 2) - 12 : wide);
  $(".train-learning").hidden = !now?.losses.length;
  $(".train-learning").innerHTML = now?.losses.length ? learning(room) : "";
  $(".train-lengths").innerHTML = lengths(room);
  if (now?.picture) maps(now.picture, now.run);
  $(".train-after").hidden = !now?.picture;
  $(".train-runs").innerHTML = runs.length
    ? `<table><caption>Your runs: accuracy by length</caption><thead><tr><th>parts</th>${LENGTHS.map((n) => `<th>${n}</th>`).join("")}<th>steps</th><th>rate</th><th>seed</th><th>task</th></tr></thead><tbody>${runs.map(({ run, done }) => `<tr><td><a href="${escape(toLink({ ...run, ...run.design, rate: linkedRate(run) }))}">${escape(named(run.design))}</a></td>${done.right.map(({ share }) => `<td>${shareOf(share)}</td>`).join("")}<td>${run.steps}</td><td>${run.rate}</td><td>${run.seed}</td><td>${run.task}</td></tr>`).join("")}</tbody></table>`
    : "";
}

// A reader

const status = (words, bad = false) => {
  $(".live-status").textContent = words;
  $(".live-status").classList.toggle("bad", bad);
};

const exchanged = () => Object.keys(PARTS).filter((part) => now.run.design[part] !== state[part]);
const unchanged = () => now.run.task === state.task && now.run.rate === rateOf(state) && !exchanged().length;
/** What the task is, and what to guess before Train is pressed. */
function asks() {
  const { example, means, chinese, unit, chance } = TASKS[state.task];
  $(".train-chinese").textContent = CHINESE ? chinese + ASKED_IN_CHINESE : "";
  $(".train-task").textContent =
    `For example, ${example}. ${means} The decoder learns on rows of up to ${TRAINED} ${unit}, and chance is ${shareOf(chance)}.`;
  return `Before you press Train, make a guess. The decoder will be right at ${TRAINED} ${unit}. What will its accuracy be at 64?`;
}

function controls() {
  for (const each of root.querySelectorAll("[data-set], [name=choice]")) each.disabled = busy;
  $("[data-do=train]").hidden = busy;
  $("[data-do=stop]").hidden = !busy;
  $("[data-do=on]").hidden = busy || !now?.done?.stopped;
  $("[data-do=clear]").hidden = busy || !runs.length;
  for (const name of ["save", "load"]) $(`[data-do=${name}]`).disabled = busy || (name === "save" && !now?.done);
  for (const each of [".train-further", ".train-act"]) $(each).hidden = busy || !now?.done;
  $(".train-guess").hidden = busy || (now?.done && unchanged());
  $("progress").hidden = !busy;
}

function ending({ run, done, guess: guessed }) {
  const at = (n) => done.right.find((each) => each.n === n).share,
    far = ofSeeds(run).map(([, , , score]) => score);
  const how = done.learned
    ? `Learned in ${run.steps} steps`
    : done.stopped
      ? `Stopped after ${run.steps} steps`
      : `Not learned in ${run.steps} steps`;
  const beside = !far.length
    ? ""
    : ` Our ${far.length} seeds at 64: ${shareOf(Math.min(...far))} to ${shareOf(Math.max(...far))}.`;
  return `${how}${done.spent ? ` and ${say(done.spent / 1000)} s` : ""}. The accuracy is ${shareOf(at(16))} at 16 ${TASKS[run.task].unit}, and ${shareOf(at(64))} at 64${guessed === "" ? "" : ` (your guess: ${shareOf(guessed)})`}. Chance is ${shareOf(TASKS[run.task].chance)}.${beside} ${done.stopped ? "Go on, or change" : "Change"} the length. Then change one part, and train again.`;
}

function told(said) {
  if (!now || said.steps === undefined || now.done) return;
  now.losses.push(...said.losses);
  if (said.now) now.looks.push(said);
  if (said.picture) now.picture = said.picture;
  now.run.steps = said.steps;
  $("progress").value = said.steps;
  $(".train-pace").textContent =
    `Step ${said.steps}, ${say(said.spent / said.steps)} ms per step. Training ends at an accuracy of ${LEARNED} at ${TRAINED}, or after ${STEPS} steps.`;
  if (!document.hidden) draw();
}

async function train(on) {
  clearTimeout(waiting);
  navigator.serviceWorker?.register(new URL("offline.js", import.meta.url)).catch(() => {});
  if (!on)
    now = {
      run: { task: state.task, design: designOf(state), seed: state.seed, rate: rateOf(state), steps: 0 },
      losses: [],
      looks: [],
      more: [],
      picture: null,
      done: null,
      guess,
    };
  else Object.assign(now, { done: null, more: [] });
  $("[data-at=n]").value = 4;
  $(".train-n").textContent = String(TRAINED);
  $(".train-says").textContent = "";
  const mine = now;
  runs = runs.filter((each) => each !== mine);
  busy = true;
  controls();
  status(on ? "Training continues." : `Training: ${named(mine.run.design)}. You may look at another tab meanwhile.`);
  draw();
  try {
    finished(mine, await ask("train", { ...mine.run, on }));
  } catch (error) {
    busy = false;
    controls();
    status(error.message, true);
  }
}

function finished(mine, done) {
  if (mine !== now) return;
  Object.assign(now, { done, picture: done.picture });
  now.run = { task: done.task, design: done.design, seed: done.seed, rate: done.rate, steps: done.steps };
  busy = false;
  runs = [now, ...runs.filter((each) => each !== now && !sameRun(each, now))].slice(0, KEPT);
  keep();
  controls();
  status(ending(now));
  $(".train-pace").textContent = "";
  draw();
  act?.();
  root.dataset.done = done.steps;
}

async function measure(n) {
  const mine = now, turn = (measured += 1);
  $(".train-n").textContent = String(n);
  $(".train-says").textContent = `Testing on rows of ${n} ${TASKS[now.run.task].unit} …`;
  try {
    const found = await ask("at", { n });
    if (mine !== now || turn !== measured) return;
    now.more = [...now.more.filter((each) => each.n !== n), found];
    Object.assign(now, { at: n, picture: found.picture });
    $(".train-says").textContent =
      `At ${n} ${TASKS[now.run.task].unit} its accuracy is ${shareOf(found.share)} on ${found.of} questions.`;
    root.dataset.at = n;
    draw();
    act?.();
  } catch (error) {
    $(".train-says").textContent = error.message;
  }
}

function changed({ target }) {
  const name = target.dataset.set;
  if (target.dataset.at === "layer") draw();
  if (target.dataset.at === "n") {
    const n = Math.round(2 ** Number(target.value));
    $(".train-n").textContent = String(n);
    clearTimeout(waiting);
    waiting = setTimeout(() => measure(n), 200);
  }
  if (target.dataset.guess !== undefined) {
    guess = target.value === "" ? "" : Math.min(1, Math.max(0, Number(target.value)));
    draw();
  }
  if (target.name === "choice") exchange({ ...state, ...CHOICES[target.value].design }, target);
  if (!name) return;
  const value = ["window", "seed"].includes(name) ? Number(target.value) : target.value;
  exchange({ ...state, [name]: value }, target);
}

/** Take what the reader chose in `target`, and say what it means for the next run. */
function exchange(next, target) {
  const name = target.dataset.set ?? target.name,
    value = next[name];
  const bad =
    name === "seed" && !(target.value !== "" && Number.isInteger(value) && value >= 0 && value < 1e6)
      ? "The seed must be an integer from 0 to 999,999."
      : refused(next);
  $(".live-error").textContent = bad;
  target.setAttribute("aria-invalid", String(Boolean(bad)));
  $("[data-do=train]").disabled = Boolean(bad);
  state = next;
  fill(target);
  if (bad) return;
  for (const each of root.querySelectorAll("[aria-invalid=true]")) each.setAttribute("aria-invalid", "false");
  try {
    history.replaceState(null, "", toLink(state));
  } catch { /* a limit of the browser */ }
  if (name !== "seed") $("[data-guess]").value = guess = "";
  const parts = now ? exchanged() : [],
    asked = asks();
  if (now?.done && unchanged())
    status(
      state.seed === now.run.seed
        ? ending(now)
        : `The seed is ${state.seed} instead of ${now.run.seed}, so the initial weights and the rows are different. Press Train.`,
    );
  else if (now?.done && parts.length)
    status(
      `You changed ${parts.map((part) => `${NAMES[part]} from ${PARTS[part][now.run.design[part]]} to ${PARTS[part][state[part]]}`).join(", ")}. What is the accuracy at 64 now? Make a guess, and press Train.`,
    );
  else if (now?.done && now.run.task === state.task && now.run.rate !== rateOf(state))
    status(
      `The learning rate is ${rateOf(state)} instead of ${now.run.rate}. The initial weights and the rows are the same. Press Train.`,
    );
  else status(asked);
  controls();
  if (!now?.done) draw();
}

async function clicked(event) {
  const { target } = event;
  const name = target.closest?.("[data-do]")?.dataset.do,
    chart = target.closest?.(".train-lengths svg");
  if (chart && !now) tapped(chart, event);
  if (name === "train" && !busy) train(false);
  if (name === "on" && !busy) train(true);
  if (name === "stop") ask("stop");
  if (name === "clear") {
    runs = [];
    keep();
    controls();
    draw();
    $("[data-do=link]").focus();
  }
  if (name === "link") {
    const address = new URL(toLink(state), location.href).href;
    try {
      await navigator.clipboard.writeText(address);
      status("The link is copied: task, parts and seed. Whoever opens it and presses Train gets the same curve.");
    } catch {
      status(`The browser does not allow this page to copy. The link is in the address bar: ${address}`);
    }
  }
  if (name === "save") {
    const { run, done } = now,
      facts = {
        what: `a decoder of the race, trained in the page: ${named(run.design)}; ${run.steps} steps, seed ${run.seed}`,
        task: run.task,
        entry: entryOf(run.design),
        design: JSON.stringify(run.design),
        seed: String(run.seed),
        rate: String(run.rate),
        steps: String(run.steps),
        right: JSON.stringify(
          Object.fromEntries(done.right.map(({ n, share }) => [n, Number(share.toFixed(4))])),
        ),
        command: toLink({ ...run, ...run.design }),
      };
    const bytes = await ask("file", { facts }),
      link = document.createElement("a"),
      address = URL.createObjectURL(new Blob([bytes], { type: "application/octet-stream" }));
    Object.assign(link, { href: address, download: "my-decoder.safetensors" }).click();
    setTimeout(() => URL.revokeObjectURL(address), 10_000);
    status(`Saved as my-decoder.safetensors, if your disk has room: ${Math.round(bytes.length / 1000)} kB.`);
  }
}

async function opened(file) {
  if (!file) return;
  if (busy) return status("The decoder is training. Press Stop, then open a file.");
  try {
    if (file.size > 4e6) throw new Error("This file is too large to be a decoder of this page.");
    const { facts, ...done } = await ask("load", { bytes: await file.arrayBuffer() });
    now = { run: done, losses: [], looks: [], more: [], picture: null, done: null, guess: "" };
    state = {
      task: done.task,
      ...done.design,
      seed: done.seed,
      rate: RATES.includes(done.rate) ? String(done.rate) : "best",
    };
    fill();
    finished(now, done);
    status(`From the file: ${facts.what ?? named(done.design)}. ${ending(now)}`);
  } catch (error) {
    status(error.message, true);
  }
}

/** The controls from the state, but for the one that the reader is at; "more" opens where it says what no choice does. */
function fill(reader) {
  for (const each of root.querySelectorAll("[data-set]")) if (each !== reader) each.value = state[each.dataset.set];
  const now = JSON.stringify(designOf(state)),
    chosen = CHOICES.findIndex(({ design }) => JSON.stringify(design) === now);
  for (const each of root.querySelectorAll("[name=choice]")) each.checked = Number(each.value) === chosen;
  const usual = chosen >= 0 && ["task", "seed", "rate"].every((name) => state[name] === begin[name]);
  if (!usual) $(".train-more").open = true;
}

async function start() {
  root.classList.add("live-app");
  const select = (name, label, names) =>
    `<label>${label} <select data-set="${name}">${Object.entries(names)
      .map(([value, words]) => `<option value="${value}">${escape(words)}</option>`)
      .join("")}</select></label>`;
  const choice = ({ name, about }, k) =>
    `<label class="train-choice"><input type="radio" name="choice" value="${k}"><span><b>${escape(name)}</b> ${escape(about)}</span></label>`;
  root.innerHTML = `<fieldset class="train-choices"><legend>Which decoder learns?</legend>${CHOICES.map(choice).join("")}</fieldset>
<p class="train-task"></p><p class="train-chinese" lang="zh-CN"></p><p class="live-error" role="alert"></p>
<p class="live-status" role="status"></p>
<div class="live-load"><label class="train-guess">your guess, 0 to 1 <input class="short" type="number" data-guess min="0" max="1" step="0.05"></label><button type="button" data-do="train">Train</button><button type="button" data-do="stop" hidden>Stop</button><button type="button" data-do="on" hidden>Go on</button><progress max="${STEPS}" value="0" hidden aria-label="Steps of training"></progress> <span class="train-pace"></span></div>
<details class="live-fold train-more"><summary>More: other parts, tasks, seeds and learning rates</summary>
<div class="live-row">${Object.keys(PARTS).map((part) => select(part, NAMES[part], PARTS[part])).join("")}</div>
<div class="live-row">${select("task", "task", Object.fromEntries(Object.entries(TASKS).map(([name, { what }]) => [name, what])))}${select("rate", "learning rate", { best: "the best we know", ...Object.fromEntries(RATES.map((rate) => [String(rate), String(rate)])) })}<label>seed <input type="number" data-set="seed" min="0" max="999999" step="1"></label></div></details>
<div class="live-both train-plots"><div class="train-learning"></div><div class="train-lengths"></div></div>
<div class="train-after" hidden><div class="train-further"><label style="max-width:40rem">length <input type="range" data-at="n" min="2" max="9" step="0.125" value="4" style="flex:1 1 12rem" aria-label="length, from 4 to 512"> <output class="train-n">16</output></label>
<p class="live-says train-says" aria-live="polite"></p></div>
<h2>Who looks at whom</h2><p class="train-row"></p><p>Each row is a token, and each column is a token to which it attends. <span class="train-layer"></span></p>
<label>show <select data-at="layer"><option value="">the layer that attends more to the answer</option><option value="0">layer 1</option><option value="1">layer 2</option></select></label><div class="train-maps"></div><div class="train-act"></div></div>
<div class="scroll train-runs" tabindex="0" role="region" aria-label="Your runs"></div>
<div class="live-row"><button type="button" data-do="link">Copy a link to these settings</button><button type="button" data-do="clear" hidden>Clear the table</button></div>
<details class="live-fold train-file"><summary>Your own decoder: save it, or open a file</summary>
<div class="live-row"><button type="button" data-do="save" disabled>Save the weights</button><label>open a file <input type="file" data-do="load" accept=".safetensors"></label></div>
<p>You can open a file that was saved here, or my-decoder.safetensors of <a href="../chapters/0-build-it/build.html">Build it</a>. You can also drop it anywhere on this page. The stops of the machine then act on it, and four notebooks measure it on many rows: <a href="../chapters/2-causal-attention/yours.html">which tokens have influence</a>, <a href="../chapters/3-representational-collapse/yours.html">at which length two prompts become one</a>, <a href="../chapters/5-rope-frequencies/yours.html">which rotary pairs it can do without</a> and <a href="../chapters/6-differential-transformer/yours.html">whether a difference of its attention maps helps</a>. The notebooks read decoders that find pairs by softmax or stick-breaking, with RoPE, learned positions or none.</p></details>`;
  const ground = () => {
    const theme = document.documentElement.dataset.theme;
    root.dataset.ground = (theme ? theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches)
      ? "dark"
      : "light";
    draw();
  };
  state = fromLink(location.hash);
  runs = before();
  fill();
  ask = engine(told, "trainer.js");
  ask("stop").catch(() => {}); // starts it while there is a network
  ground();
  controls();
  status(asks());
  new MutationObserver(ground).observe(document.documentElement, { attributes: true, attributeFilter: ["data-theme"] });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", ground);
  root.addEventListener("input", changed);
  root.addEventListener("click", clicked);
  root.addEventListener("change", ({ target }) => target.type === "file" && opened(target.files[0]));
  addEventListener("dragover", (event) => event.preventDefault());
  addEventListener("drop", (event) => {
    event.preventDefault();
    opened(event.dataTransfer.files[0]);
  });
  addEventListener("resize", draw);
  document.addEventListener("visibilitychange", () => document.hidden || draw());
  addEventListener("hashchange", () => {
    if (busy || location.hash === toLink(state)) return;
    state = fromLink(location.hash);
    fill();
    status(asks());
    controls();
    draw();
  });
  seeds = await fetch(new URL("seeds.json", import.meta.url)).then((answer) => answer.json()).catch(() => ({}));
  draw();
  act = (await import("./stops.js")).mounted($(".train-act"), { ask, length: () => now.at ?? TRAINED });
  if (now?.done) act(); // a run may end, and a file may be opened, before it has come
  root.dataset.ready = "";
}

if (root && location.protocol !== "file:") start();

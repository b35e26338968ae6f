// "Try it": a prompt, a model that the reader may change, and what follows, each time beside the model as trained.
import * as change from "./change.js";
import { engine } from "./engine.js";
import { atlas, bars, curves, headMap, say } from "./pictures.js";
import { PRESETS } from "./presets.js";

const root = document.getElementById("live");
const escape = (text) =>
  String(text).replace(/[&<>"]/g, (c) => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" })[c]);
const visible = (text) => text.replace(/ /g, "·").replace(/\n/g, "⏎").replace(/\t/g, "⇥") || "∅";
const first = PRESETS[0].link;

const VIEWS = { next: "Next token", heads: "All heads", pair: "Two prompts", heard: "Influence" };
const QUARTERS = ["fastest", "second", "third", "slowest"];
const NAMES = { sink: "sink", diagonal: "diagonal", previous: "previous token", slash: "slash further back" };

let state = change.fromLink(location.hash.length > 1 ? location.hash : first);
let ask, facts, shape, loading = false, unkept = ""; // unkept: what the browser could not keep, in a sentence
let run = 0; // which computation is the newest
let computing; // the promise of the newest
let made = null; // what the views show
let waiting = 0; // for the end of typing
let writing = { of: null, box: null }; // what the model writes of which computation; it outlives a picture drawn anew
let busy = ""; // which button is at work
let drawing = 0; // which picture is the newest
let heard = {}; // the influence of each token, by what it was computed for
let stored = null; // a run of the model on the first prompt, drawn before anything is loaded

if (location.protocol !== "file:") begin();

function begin() {
  root.classList.add("live-app");
  const style = document.createElement("link");
  style.rel = "stylesheet";
  style.href = new URL("live.css", import.meta.url).href;
  document.head.append(style);
  const number = (name, label, more = "") =>
    `<label>${label} <input type="number" data-set="${name}" ${more}></label>`;
  const words = (name, label, more = "") =>
    `<label>${label} <input type="text" class="short" data-set="${name}" ${more} autocomplete="off" spellcheck="false"></label>`;
  const turn = (k) =>
    `<label>${QUARTERS[k]} <select data-quarter="${k}"><option value="t">turns</option><option value="s">stands still</option><option value="o">is off</option></select></label>`;
  root.innerHTML = `
<div class="live-load"><button type="button" data-do="load">Load the model</button><progress max="100" value="0" hidden aria-label="Loading"></progress></div>
<p class="live-status" role="status">A language model of 135 million parameters runs in this page. What you type never leaves it.</p>
<div class="live-row"><label>Start from <select data-do="preset"><option value="">a prompt of the chapters …</option>${PRESETS.map((each, k) => `<option value="${k}">${escape(each.name)}</option>`).join("")}</select></label>
<button type="button" data-do="link">Copy a link to this</button></div>
<p class="live-about" hidden></p>
<div class="live-prompts"><label class="tall">Prompt <textarea data-set="prompt" maxlength="20000" spellcheck="false"></textarea></label>
<label class="tall second">A second prompt, to compare <textarea data-set="second" maxlength="20000" spellcheck="false"></textarea></label></div>
<details class="live-change"><summary>Change the model<span class="live-changed"></span></summary>
<fieldset><legend>Positions (RoPE)</legend><div class="live-row">${words("base", "base", 'placeholder="as trained" inputmode="decimal"')}${[0, 1, 2, 3].map(turn).join("")}${words("silent", "pairs off", 'placeholder="1, 5-8"')}</div>
<div class="live-row">${number("stretch", "positions times", 'min="0" step="0.5"')}${number("gap", "leave out", 'min="0"')}${number("after", "positions after token", 'min="1"')}</div></fieldset>
<fieldset><legend>Who may be seen</legend><div class="live-row">${number("window", "window (0: all)", 'min="0"')}<label><input type="checkbox" data-set="first"> first token hidden</label>${words("hide", "hidden tokens", 'placeholder="3, 7-9"')}</div>
<div class="live-row">${words("separator", "separator")}${number("every", "put in after every … tokens (0: never)", 'min="0"')}</div></fieldset>
<fieldset><legend>Heads</legend><div class="live-row">${words("off", "off (layer.head)", 'placeholder="4.5, 20.*"')}${words("alone", "only these on", 'placeholder="all"')}${number("temperature", "temperature of all heads", 'min="0.01" step="0.1"')}</div></fieldset>
<p class="live-error" role="alert"></p><button type="button" data-do="reset">As trained</button></details>
<div class="live-tabs" role="tablist" aria-label="What to look at">${Object.entries(VIEWS)
    .map(
      ([k, name]) =>
        `<button type="button" role="tab" id="tab-${k}" data-view="${k}" aria-controls="live-panel">${name}</button>`,
    )
    .join("")}</div>
<div id="live-panel" role="tabpanel" tabindex="0"></div>`;
  paintGround();
  new MutationObserver(paintGround).observe(document.documentElement, {
    attributes: true,
    attributeFilter: ["data-theme"],
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", paintGround);
  root.addEventListener("input", changed);
  root.addEventListener("change", changed);
  root.addEventListener("click", clicked);
  root.addEventListener("keydown", keys);
  addEventListener("hashchange", () => {
    if (location.hash === change.toLink(state)) return;
    state = change.fromLink(location.hash);
    fill();
    compute();
  });
  addEventListener("resize", () => made && draw());
  fill();
  draw();
  fetch(new URL("model.json", import.meta.url)).then((answer) => answer.json()).then(({ bytes }) => {
    if (!loading) $("[data-do=load]").textContent = `Load the model: ${Math.round(bytes / 1e6)} MB, once`;
  }).catch(() => {});
  fetch(new URL("stored.json", import.meta.url)).then((answer) => answer.json()).then((written) => {
    stored = { ...written, maps: unfolded(written) };
    if (!made) draw();
  }).catch(() => {});
}

/** All maps (layers * heads, n, n) from their rows up to the diagonal, in steps of 1 / 65535. */
function unfolded({ tokens, shape: { layers, heads }, maps }) {
  const bytes = Uint8Array.from(atob(maps), (c) => c.charCodeAt(0)),
    rows = new Uint16Array(bytes.buffer),
    n = tokens.length;
  const out = new Float32Array(layers * heads * n * n);
  let at = 0;
  for (let map = 0; map < layers * heads; map += 1)
    for (let i = 0; i < n; i += 1)
      for (let j = 0; j <= i; j += 1) out[(map * n + i) * n + j] = rows[at++] / 65535;
  return out;
}

function $(query) { return root.querySelector(query); }

function paintGround() {
  const theme = document.documentElement.dataset.theme;
  const dark = theme ? theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  root.dataset.ground = dark ? "dark" : "light";
  if (made) draw();
}

function status(text, bad = false) {
  const line = $(".live-status");
  line.textContent = text;
  line.classList.toggle("bad", bad);
}

/** The controls from the state. */
function fill() {
  for (const control of root.querySelectorAll("[data-set]")) {
    const value = state[control.dataset.set];
    if (control.type === "checkbox") control.checked = value;
    else if (control.value !== String(value)) control.value = value;
  }
  for (const control of root.querySelectorAll("[data-quarter]"))
    control.value = state.quarters[control.dataset.quarter] ?? "t";
  marks();
}

function marks() {
  const same = change.untouched(state);
  $(".live-changed").textContent = same ? ": as trained" : `: ${change.changes(state).join(", ")}`;
  if (!same && innerWidth > 600) $(".live-change").open = true; // on a phone the line says what changed
  if (!Object.hasOwn(VIEWS, state.view)) state.view = "next";
  for (const tab of root.querySelectorAll("[role=tab]")) {
    const now = tab.dataset.view === state.view;
    tab.setAttribute("aria-selected", String(now));
    tab.tabIndex = now ? 0 : -1;
  }
  $("#live-panel").setAttribute("aria-labelledby", `tab-${state.view}`);
  $(".second").hidden = state.view !== "pair" && !state.second;
}

/** The state into the address line; some browsers refuse after a hundred times within seconds. */
function remember() {
  try {
    history.replaceState(null, "", change.toLink(state));
  } catch {} // the next pause writes it
}

function changed({ target }) {
  if (target.dataset.do === "preset") {
    if (target.value === "") return;
    const preset = PRESETS[target.value];
    state = change.fromLink(preset.link);
    $(".live-about").hidden = false;
    $(".live-about").textContent = preset.about;
    fill();
  } else {
    const name = target.dataset.quarter ? "quarters" : target.dataset.set;
    const value = target.dataset.quarter
      ? Array.from(root.querySelectorAll("[data-quarter]"), (each) => each.value).join("")
      : target.type === "checkbox"
        ? target.checked
        : target.value;
    // a field that was typed into says it once more when it is left
    if (!name || String(state[name]) === String(value)) return;
    state[name] = value;
    if (name === "prompt") state.token = 0;
  }
  marks();
  clearTimeout(waiting);
  waiting = setTimeout(begun, 350);
}

/** What was typed is read. */
function begun() {
  waiting = 0;
  remember();
  compute();
}

/** Whether the picture is of what stands in the fields: a press right after typing waits for it. */
async function caughtUp() {
  if (waiting) {
    clearTimeout(waiting);
    begun();
  }
  for (let seen; seen !== computing;) await (seen = computing);
  return !$("#live-panel").inert;
}

/** Do what the button `name` is for, and let nobody press it meanwhile. */
async function pressed(name, work) {
  if (busy) return;
  const press = (is) => {
    busy = is;
    for (const button of root.querySelectorAll("[data-do=generate], [data-do=hear]")) button.disabled = Boolean(busy);
  };
  press(name);
  try {
    if (await caughtUp()) await work();
  } catch (error) {
    status(error.message, true);
  } finally {
    press("");
    if (document.activeElement === document.body) $(`[data-do=${name}]`)?.focus(); // a disabled button loses it
  }
}

async function clicked({ target }) {
  const button = target.closest("button");
  if (!button) return;
  if (button.dataset.do === "load") load();
  if (button.dataset.do === "link") {
    remember();
    try {
      await navigator.clipboard.writeText(location.href);
      status("The link is copied. It contains the prompt and all settings.");
    } catch {
      status("The browser does not allow this page to copy. The link is in the address bar.");
    }
  }
  if (button.dataset.do === "reset") {
    Object.assign(state, change.TRAINED);
    fill();
    remember();
    compute();
  }
  if (button.dataset.view) show(button.dataset.view);
  if (button.dataset.token) {
    state.token = Number(button.dataset.token);
    remember();
    draw();
    root.querySelector(`[data-token="${state.token}"]`)?.focus();
  }
  if (button.dataset.do === "generate") pressed("generate", generate);
  if (button.dataset.do === "hear") pressed("hear", hear);
  if (button.dataset.do === "head-off" || button.dataset.do === "head-alone") {
    const name = `${state.layer}.${state.head}`, field = button.dataset.do === "head-off" ? "off" : "alone";
    const listed = state[field].split(",").map((each) => each.trim()).filter(Boolean);
    state[field] = (listed.includes(name) ? listed.filter((each) => each !== name) : [...listed, name]).join(", ");
    fill();
    remember();
    compute();
  }
}

function show(view) {
  state.view = view;
  marks();
  remember();
  if (view === "pair" && made && !made.pair) compute();
  else draw();
}

function keys(event) {
  const { target, key } = event;
  if (target.role === "tab" || target.getAttribute?.("role") === "tab") {
    const names = Object.keys(VIEWS), step = { ArrowRight: 1, ArrowLeft: -1 }[key];
    if (!step) return;
    event.preventDefault();
    show(names[(names.indexOf(state.view) + step + names.length) % names.length]);
    $(`#tab-${state.view}`).focus();
  }
  if (target.classList?.contains("live-atlas")) {
    const [dl, dh] = { ArrowRight: [1, 0], ArrowLeft: [-1, 0], ArrowDown: [0, 1], ArrowUp: [0, -1] }[key] ?? [];
    if (dl === undefined) return;
    event.preventDefault();
    open(state.layer + dl, state.head + dh);
    $(".live-atlas").focus();
  }
}

function open(layer, head) {
  state.layer = Math.min(shape.layers, Math.max(1, layer));
  state.head = Math.min(shape.heads, Math.max(1, head));
  remember();
  draw();
}

async function load() {
  if (loading) return;
  loading = true;
  const button = $("[data-do=load]"), bar = $("progress");
  button.disabled = true;
  bar.hidden = false;
  ask ??= engine(({ progress, arrived, total, starting, note }) => {
    if (note) return status((unkept = note));
    bar.value = progress;
    status(
      starting
        ? "Starting the model …"
        : `Loading: ${Math.round(arrived / 1e6)} of ${Math.round(total / 1e6)} MB`,
    );
  });
  navigator.serviceWorker?.register(new URL("offline.js", import.meta.url)).catch(() => {}); // a convenience: without it, all else works
  try {
    facts = await ask("load");
    shape = facts.shape;
    $(".live-load").hidden = true;
    root.dataset.loaded = facts.seconds.toFixed(2);
    await compute();
  } catch (error) {
    status(error.message, true);
    button.disabled = false;
    bar.hidden = true;
    loading = false;
  }
}

/**
 * One pass over tokens with these settings; `keep` keeps its keys and values under that name, `from` goes on behind p of them.
 * @param {number[]} ids
 * @param {import("./change.js").Use} use
 * @param {{ want?: string[], rows?: number[], from?: { name: string, p: number } | null, keep?: string, hide?: number }} [how]
 */
function pass(ids, use, { want, rows, from, keep, hide } = {}) {
  const p = from?.p ?? 0, n = ids.length;
  const used = hide ? { ...use, hide: new Set([...use.hide, hide]) } : use;
  return ask("forward", {
    ids,
    rows: rows ?? ids.map((_, k) => k),
    from,
    keep,
    want,
    ...change.tables(used, shape, p, n),
    bias: change.bias(used, p, n),
    gain: change.gain(used, shape),
  });
}

const ALL = ["logits", "attentions", "states"];
const kept = new Map(); // the model as trained, by prompt

async function asTrained(tokens) {
  const key = tokens.map(({ id }) => id).join();
  if (!kept.has(key)) {
    if (kept.size > 3) kept.delete(kept.keys().next().value);
    kept.set(key, await pass(tokens.map(({ id }) => id), change.checked({}, shape), { want: ALL, keep: "trained" }));
    kept.get(key).key = key;
  }
  return kept.get(key);
}

/** The tokens of a text, or an Error with a sentence. */
async function read(text, name) {
  if (!text) throw new Error(`${name} is empty. Type something, or choose one of the chapters' prompts.`);
  if (text.length > change.LONGEST)
    throw new Error(
      `${name} has ${text.length.toLocaleString("en-US")} characters, but this page reads at most ${change.LONGEST.toLocaleString("en-US")}. Shorten it.`,
    );
  const tokens = await ask("tokenize", { text });
  if (tokens.length > change.MOST)
    throw new Error(`${name} has ${tokens.length} tokens, but this page reads at most ${change.MOST}. Shorten it.`);
  return tokens;
}

async function both(text, name) {
  const tokens = await read(text, name);
  const own = change.checked(state, shape, tokens.length);
  if (change.untouched(state))
    return {
      tokens,
      after: tokens,
      hidden: own.hide,
      use: own,
      trained: await asTrained(tokens),
      changed: null,
    };
  const between = own.every && own.separator ? await ask("tokenize", { text: own.separator }) : [];
  const after = change.separated(
    tokens,
    between.map((each) => ({ ...each, added: true })),
    between.length ? own.every : 0,
  );
  if (after.length > change.MOST)
    throw new Error(
      `With separators, ${name.toLowerCase()} has ${after.length} tokens, but this page reads at most ${change.MOST}. Shorten it.`,
    );
  const trained = await asTrained(tokens),
    use = change.placed(
      own,
      tokens.map((each) => after.indexOf(each)),
    );
  return {
    tokens,
    after,
    hidden: own.hide,
    use,
    trained,
    changed: await pass(
      after.map(({ id }) => id),
      use,
      { want: ALL },
    ),
  };
}

function compute() { return (computing = computed()); }

async function computed() {
  if (!shape) return draw();
  const number = (run += 1), start = performance.now();
  $(".live-error").textContent = "";
  for (const control of root.querySelectorAll("[aria-invalid]")) control.removeAttribute("aria-invalid");
  try {
    change.checked(state, shape);
    status("Computing …");
    const one = await both(state.prompt, "The prompt");
    if (number !== run) return;
    const found = { ...one, pair: null, named: null };
    if (state.view === "pair" && state.second) {
      found.pair = await both(state.second, "The second prompt");
      found.named = await named();
    }
    if (number !== run) return;
    for (const [side, tokens] of [[found.trained, found.tokens], [found.changed, found.after]])
      if (side) side.scores ??= change.scores(side.attentions, shape.layers * shape.heads, tokens.length);
    made = found;
    root.dispatchEvent(new CustomEvent("computed", { detail: { ...made, state: { ...state } } }));
    root.dataset.computed = String(number);
    const took = `${found.after.length} tokens in ${((performance.now() - start) / 1000).toFixed(1)} s`;
    status(
      `${took}, on ${facts.threads === 1 ? "one thread" : `${facts.threads} threads`} of this computer. ${unkept}`,
    );
    stale(false);
    await draw();
  } catch (error) {
    if (number !== run) return;
    root.dataset.computed = `${number} refused`;
    stale(true);
    status(error.message, true);
    if (error.field) {
      $(".live-error").textContent = error.message;
      $(`[data-set="${error.field}"]`)?.setAttribute("aria-invalid", "true");
    }
  }
}

/** Dim what is not of the state above it, and let nobody press there. */
function stale(is) {
  const panel = $("#live-panel");
  panel.classList.toggle("stale", is);
  panel.inert = is;
}

/** The two tokens of a margin, or a sentence. */
async function named() {
  const ids = [];
  for (const name of ["right", "wrong"]) {
    const tokens = await ask("tokenize", { text: state[name] });
    if (tokens.length !== 1)
      return {
        sentence: `A margin compares two single tokens, but “${visible(state[name])}” is ${tokens.length} tokens.`,
      };
    ids.push(tokens[0].id);
  }
  return { ids };
}

// The views -----------------------------------------------------------------------------------------------

const room = () => Math.max(300, $("#live-panel").clientWidth);
const row = (array, k, width) => array.subarray(k * width, (k + 1) * width);
const last = (array, width) => array.subarray(array.length - width);
/** Which token of the changed prompt the token k of the plain one became (separators move it). */
const moved = (k) => made.after.findIndex((each) => each === made.tokens[k]);
const chosen = () => (state.token >= 1 && state.token <= made.tokens.length ? state.token : made.tokens.length) - 1;

const numbered = (tokens, k) => tokens.slice(0, k + 1).filter((each) => !each.added).length;
/** A token by the prompt's own number; a separator by the token that it follows. */
const name = (tokens, k) =>
  tokens[k].added
    ? `separator after ${numbered(tokens, k)}`
    : `${numbered(tokens, k)} ${visible(tokens[k].text)}`;
const called = (tokens, k) =>
  tokens[k].added ? `the ${name(tokens, k)}` : `token ${numbered(tokens, k)}, “${visible(tokens[k].text)}”,`;

function tokenStrip(tokens, picked) {
  const plain = new Map(made.tokens.map((each, k) => [each, k]));
  return `<div class="live-tokens" role="group" aria-label="Tokens">${tokens
    .map((each) =>
      each.added
        ? `<button type="button" class="added" disabled>${escape(visible(each.text))}</button>`
        : `<button type="button" data-token="${plain.get(each) + 1}" class="${made.hidden.has(plain.get(each) + 1) ? "hidden" : ""}" aria-pressed="${plain.get(each) === picked}" title="token ${plain.get(each) + 1}">${escape(visible(each.text))}</button>`,
    )
    .join("")}</div>`;
}

async function words(ids) { return (await ask("shown", { ids })).map(visible); }

async function draw() {
  const panel = $("#live-panel"),
    number = (drawing += 1);
  if (
    !made &&
    stored?.prompt === state.prompt &&
    change.untouched(state) &&
    ["next", "heads"].includes(state.view)
  )
    return drawStored(panel);
  if (!made) {
    panel.innerHTML = `<p>${{ next: "The most likely next tokens after every token of the prompt, and the text that the model writes.", heads: "All 270 heads on your prompt: where each token attends, and which heads are sinks, diagonals or slashes.", pair: "The distance between the last states of two prompts, layer by layer, and the margin between two answers.", heard: "The change at the last token when each token is hidden in turn." }[state.view]} Load the model to see it.</p>`;
    return;
  }
  const html = await { next: drawNext, heads: drawHeads, pair: drawPair, heard: drawHeard }
    [state.view]()
    .catch((error) => status(`The picture could not be drawn: ${error.message}`, true));
  if (number !== drawing || !html) return;
  const held = panel.contains(document.activeElement) && document.activeElement;
  panel.innerHTML = html.text;
  html.ready?.(panel);
  if (held)
    panel
      .querySelector(
        held.className === "live-atlas"
          ? ".live-atlas"
          : Object.entries(held.dataset)
              .map(([k, v]) => `[data-${k}="${v}"]`)
              .join("") || "none",
      )
      ?.focus();
  root.dataset.drawn = state.view;
}

function drawStored(panel) {
  const { tokens, next, maps } = stored,
    n = tokens.length,
    k = (state.token >= 1 && state.token <= n ? state.token : n) - 1;
  const strip = `<div class="live-tokens" role="group" aria-label="Tokens">${tokens.map((text, i) => `<button type="button" data-token="${i + 1}" aria-pressed="${i === k}" title="token ${i + 1}">${escape(visible(text))}</button>`).join("")}</div>`;
  const note = "<p>This is a stored run of the model. Load the model to type your own prompt and to change the model.</p>";
  if (state.view === "next") {
    const rows = next[k].map(([text, p]) => ({ name: visible(text), values: [p] }));
    const sentence = `After token ${k + 1}, “${rows[0].name}” is likeliest: ${say(rows[0].values[0])}.`;
    panel.innerHTML = `${note}${strip}<p class="live-says" aria-live="polite">${escape(sentence)}</p><div>${bars(rows, "probability", `Probabilities of the likeliest next tokens after token ${k + 1}. ${sentence}`, room())}</div>`;
  } else {
    const { layers, heads } = stored.shape,
      scores = change.scores(maps, layers * heads, n);
    const counted = change.KINDS.map(
      (kind) => `${scores.filter((each) => change.mark(each) === kind).length} ${NAMES[kind]}`,
    ).join(", ");
    panel.innerHTML = `${note}<p class="live-says">Heads whose strongest score is above ${change.MARK}: ${counted}.</p><canvas class="live-atlas" role="img" aria-label="All ${layers * heads} heads: ${counted}."></canvas>`;
    atlas($(".live-atlas"), maps, n, stored.shape, scores.map(change.mark), [state.layer, state.head], root);
  }
  root.dataset.stored = state.view;
}

const key = () =>
  made.changed
    ? '<div class="live-key"><span class="trained">■ as trained</span><span class="changed">■ changed</span></div>'
    : "";

async function drawNext() {
  const k = chosen(), v = shape.vocabulary;
  const before = change.softmax(row(made.trained.logits, k, v));
  const now = made.changed && change.softmax(row(made.changed.logits, moved(k), v));
  const ids = change.likeliest(before, 8);
  if (now) for (const id of change.likeliest(now, 8)) if (!ids.includes(id)) ids.push(id);
  ids.sort((a, b) => Math.max(before[b], now?.[b] ?? 0) - Math.max(before[a], now?.[a] ?? 0));
  const names = await words(ids.slice(0, 10));
  const rows = names.map((name, i) => ({ name, values: [before[ids[i]], ...(now ? [now[ids[i]]] : [])] }));
  const apart = now ? change.divergence(row(made.trained.logits, k, v), row(made.changed.logits, moved(k), v)) : 0;
  const sentence = now
    ? `After token ${k + 1}, as trained “${names[ids.slice(0, 10).indexOf(change.likeliest(before, 1)[0])] ?? ""}” is likeliest (${say(Math.max(...before))}); changed, it has ${say(now[change.likeliest(before, 1)[0]])}. Divergence: ${say(apart)} nats.`
    : `After token ${k + 1}, “${names[0]}” is likeliest: ${say(Math.max(...before))}.`;
  return {
    text: `${tokenStrip(made.changed ? made.after : made.tokens, k)}${key()}<p class="live-says" aria-live="polite">${escape(sentence)}</p>
<div>${bars(rows, "probability", `Probabilities of the likeliest next tokens after token ${k + 1}. ${sentence}`, room())}</div>
<div class="live-row"><button type="button" data-do="generate" ${busy && "disabled"}>Let it write 20 tokens</button></div><div class="live-writing" aria-live="polite"></div>`,
  ready(panel) {
    if (writing.of === made) panel.querySelector(".live-writing").replaceWith(writing.box);
  } };
}

async function generate() {
  const number = run, box = $(".live-writing");
  if (!box) return;
  writing = { of: made, box };
  box.innerHTML = "";
  try {
    for (const [side, tokens, use, name] of [
      ["trained", made.tokens, change.checked({}, shape), "as trained"],
      ["changed", made.changed && made.after, made.use, "changed"],
    ]) {
      if (!tokens) continue;
      const line = document.createElement("div");
      line.className = `live-written ${side}`;
      box.append(line);
      let ids = tokens.map(({ id }) => id), p = 0;
      const said = [];
      for (let step = 0; step < 20 && p + ids.length < 2 * change.MOST; step += 1) {
        const { logits } = await pass(ids, use, {
          want: ["logits"],
          rows: [ids.length - 1],
          from: p ? { name: side, p } : null,
          keep: side,
        });
        if (number !== run) return;
        p += ids.length;
        ids = [change.likeliest(logits, 1)[0]];
        said.push(...ids);
        const [word] = await ask("shown", { ids }), text = await ask("written", { ids: said });
        line.textContent = `${name}: … ${text.replace(/\uFFFD+$/, "")}`; // the end may be a part of a letter
        if (/^<\|.*\|>$/.test(word)) break;
      }
    }
  } finally {
    kept.clear(); // the keys and values of the prompt as trained are overwritten
  }
}

async function drawHeads() {
  state.layer = Math.min(shape.layers, Math.max(1, Math.round(state.layer) || 1));
  state.head = Math.min(shape.heads, Math.max(1, Math.round(state.head) || 1));
  const index = (state.layer - 1) * shape.heads + state.head - 1;
  const k = chosen(), sides = [{ name: "as trained", tokens: made.tokens, at: k, ...made.trained }];
  if (made.changed) sides.push({ name: "changed", tokens: made.after, at: moved(k), ...made.changed });
  const before = made.trained.scores, now = made.changed?.scores;
  const count = (scores, kind) => scores.filter((each) => change.mark(each) === kind).length;
  const legend = change.KINDS.map(
    (kind) =>
      `<span><i style="color:var(--${{ sink: "orange", diagonal: "green", previous: "purple", slash: "blue" }[kind]})"></i>${NAMES[kind]}: ${count(before, kind)}${now ? ` → ${count(now, kind)}` : ""}</span>`,
  ).join("");
  const strong = (score) => Math.max(score.diagonal, score.previous, score.slash);
  const with_ = before.map((score, i) => [i, strong(score)]).filter(([, s]) => s > change.MARK);
  const lost = now ? with_.filter(([i, s]) => strong(now[i]) < s / 2) : [];
  const sentence = now
    ? `Of ${with_.length} heads with a slash (at any distance) above ${change.MARK} as trained, ${lost.length} keep less than half of it. Sinks above ${change.MARK}: ${before.filter((s) => s.sink > change.MARK).length} → ${now.filter((s) => s.sink > change.MARK).length}.`
    : `${with_.length} of ${before.length} heads have a slash (at any distance) above ${change.MARK}, ${before.filter((s) => s.sink > change.MARK).length} a sink.`;
  const table = now ? changesTable(before, now) : "";
  const scored = (scores) => {
    const s = scores[index];
    return `sink ${say(s.sink)}, diagonal ${say(s.diagonal)}, previous token ${say(s.previous)}${s.offset ? `, ${s.offset} back ${say(s.slash)}` : ""}`;
  };
  const looks = sides
    .map(
      (side) =>
        `${made.changed ? `${side.name}: ` : ""}token ${k + 1} “${visible(made.tokens[k].text)}” looks at ${topThree(side, index)}`,
    )
    .join("; ");
  const off = state.off
    .split(",")
    .map((s) => s.trim())
    .includes(`${state.layer}.${state.head}`);
  const text = `<p class="live-says" aria-live="polite">${escape(sentence)}</p><div class="live-key">${legend}</div>
${sides.map((side, i) => `<h3 class="${i ? "changed" : "trained"}">${side.name}: layers 1 to ${shape.layers} from left to right, heads 1 to ${shape.heads} down</h3><canvas class="live-atlas" ${i ? "" : 'tabindex="0"'} role="img" aria-label="All ${before.length} heads ${side.name}. ${escape(sentence)} Arrow keys choose a head."></canvas>`).join("")}
<div class="live-row"><label>layer <input type="number" data-head="layer" min="1" max="${shape.layers}" value="${state.layer}"></label><label>head <input type="number" data-head="head" min="1" max="${shape.heads}" value="${state.head}"></label>
<button type="button" data-do="head-off" aria-pressed="${off}">${off ? "Turn this head on again" : "Turn this head off"}</button><button type="button" data-do="head-alone">Only this head</button></div>
<div class="live-both">${sides.map((side, i) => `<div><h3 class="${i ? "changed" : "trained"}">Layer ${state.layer}, head ${state.head}, ${side.name}</h3><p>${scored(side.scores)}</p><canvas class="live-map" role="img" aria-label="Map of layer ${state.layer}, head ${state.head}, ${side.name}: ${escape(looks)}"></canvas></div>`).join("")}</div>
<p class="live-says">${escape(looks)}.</p>${tokenStrip(made.tokens, k)}${table}`;
  return { text, ready(panel) {
    const start = performance.now();
    panel.querySelectorAll(".live-atlas").forEach((canvas, i) => {
        const place = atlas(
          canvas,
          sides[i].attentions,
          sides[i].tokens.length,
          shape,
          sides[i].scores.map(change.mark),
          [state.layer, state.head],
          root,
        );
      canvas.onclick = (event) => open(...place(event));
    });
    root.dataset.atlas = (performance.now() - start).toFixed(1);
    panel.querySelectorAll(".live-map").forEach((canvas, i) => {
        const side = sides[i],
          m = side.tokens.length;
        headMap(
          canvas,
          side.attentions.subarray(index * m * m, (index + 1) * m * m),
          side.tokens.map((each) => visible(each.text)),
          side.at,
          root,
        );
    });
    for (const box of panel.querySelectorAll("[data-head]")) box.onchange = () => {
      const value = Math.round(Number(box.value)) || 1;
      open(box.dataset.head === "layer" ? value : state.layer, box.dataset.head === "head" ? value : state.head);
      root.querySelector(`[data-head=${box.dataset.head}]`)?.focus();
    };
  } };
}

function topThree(side, index) {
  const m = side.tokens.length,
    weights = row(side.attentions.subarray(index * m * m, (index + 1) * m * m), side.at, m);
  return change
    .likeliest(weights, Math.min(3, side.at + 1))
    .map((j) => `“${name(side.tokens, j)}” ${say(weights[j])}`)
    .join(", ");
}

function changesTable(before, now) {
  const rows = before
    .flatMap((a, i) => change.KINDS.map((kind) => [i, kind, a[kind], now[i][kind]]))
    .filter(([, , a, b]) => Math.max(a, b) > change.MARK)
    .sort((x, y) => Math.abs(y[2] - y[3]) - Math.abs(x[2] - x[3]))
    .slice(0, 8);
  return `<table><caption>Heads whose scores change most</caption><thead><tr><th>head</th><th>score</th><th>as trained</th><th>changed</th></tr></thead><tbody>${rows
    .map(
      ([i, kind, a, b]) =>
        `<tr><td>layer ${Math.floor(i / shape.heads) + 1}, head ${(i % shape.heads) + 1}</td><td>${NAMES[kind]}${kind === "slash" && before[i].offset ? ` (${before[i].offset} back)` : ""}</td><td>${say(a)}</td><td>${say(b)}</td></tr>`,
    )
    .join("")}</tbody></table>`;
}

async function drawPair() {
  const fields = `<div class="live-row"><label>answer <input type="text" class="short" data-set="right" value="${escape(state.right)}" autocomplete="off"></label><label>against <input type="text" class="short" data-set="wrong" value="${escape(state.wrong)}" autocomplete="off"></label></div>`;
  if (!state.second)
    return {
      text: "<p>Type a second prompt above. The page then draws the distance between the two last states, layer by layer.</p>",
    };
  if (!made.pair) return { text: "<p>Computing …</p>" };
  const { layers, width, vocabulary } = shape, other = made.pair;
  const state_ = (side, tokens, layer) => row(side.states, (layer + 1) * tokens.length - 1, width);
  const lines = [], far = {};
  for (const side of made.changed && other.changed ? ["trained", "changed"] : ["trained"]) {
    const [ta, tb] = side === "trained" ? [made.tokens, other.tokens] : [made.after, other.after];
    const apart = Array.from({ length: layers + 1 }, (_, l) =>
      change.distance(state_(made[side], ta, l), state_(other[side], tb, l)),
    );
    const large = Array.from({ length: layers + 1 }, (_, l) => change.size(state_(made[side], ta, l)));
    far[side] = apart[layers];
    lines.push({
      name: `distance, ${side === "trained" ? "as trained" : "changed"}`,
      colour: side === "trained" ? "blue" : "orange",
      values: apart,
    });
    lines.push({
      name: `size of the state${side === "trained" ? "" : ", changed"}`,
      colour: side === "trained" ? "quiet" : "purple",
      values: large,
      dashed: true,
    });
  }
  const sentence = `After the last layer and its norm the two states are ${say(far.trained)} apart (sum of absolute differences)${far.changed === undefined ? "" : `, and ${say(far.changed)} apart in the changed model`}.`;
  const margin = (side, tokens) => {
    const logits = last(side.logits, vocabulary);
    return logits[made.named.ids[0]] - logits[made.named.ids[1]];
  };
  const cells = (side) =>
    `<td>${say(margin(made[side], made.tokens))}</td><td>${say(margin(other[side], other.tokens))}</td>`;
  const table = made.named?.ids
    ? `<table><caption>Margin of “${escape(visible(state.right))}” over “${escape(visible(state.wrong))}”, in logits</caption><thead><tr><th></th><th>first prompt</th><th>second prompt</th></tr></thead><tbody><tr><td>as trained</td>${cells("trained")}</tr>${made.changed ? `<tr><td>changed</td>${cells("changed")}</tr>` : ""}</tbody></table>`
    : `<p class="live-error">${escape(made.named?.sentence ?? "")}</p>`;
  return {
    text: `<p class="live-says" aria-live="polite">${sentence}</p>${curves(lines, "layer (0: embedding)", "L1", sentence, room())}${fields}${table}`,
  };
}

const hearingKey = () => JSON.stringify([state.prompt, Object.keys(change.TRAINED).map((k) => state[k])]);

async function drawHeard() {
  const found = heard[hearingKey()], n = made.after.length;
  const each = 0.05 * n + 0.4;
  const button = `<div class="live-row"><button type="button" data-do="hear" ${busy && "disabled"}>${found ? "Again" : "Hide each token in turn"}</button><span>${n} short passes of the model${made.changed ? ", changed" : ""}</span><progress class="hearing" max="${n}" value="0" ${busy === "hear" ? "" : "hidden"} aria-label="Tokens hidden so far"></progress></div>`;
  if (!found)
    return {
      text: `${tokenStrip(made.changed ? made.after : made.tokens, chosen())}<p>Each token is hidden from all later ones, in all layers. How much does the next token after the last one change?</p>${button}`,
    };
  const rows = made.after.map((_, k) => ({ name: name(made.after, k), values: [found[k]] }));
  const top = change.likeliest(found, 1)[0];
  const total = found.reduce((a, b) => a + b, 0);
  const sentence = `Hiding ${called(made.after, top)} changes the next token most: ${say(found[top])} nats, ${Math.round((100 * found[top]) / (total || 1))}% of the sum over all tokens.`;
  return {
    text: `<p class="live-says" aria-live="polite">${escape(sentence)}</p>${bars(rows, "divergence of the next token (nats)", sentence, room())}${button}`,
  };
}

/** Hide each token but the last from all later ones; what was computed up to it is kept. */
async function hear() {
  const number = run, ids = made.after.map(({ id }) => id), n = ids.length, { use } = made, at = hearingKey();
  const bar = () => $(".hearing") ?? document.createElement("progress"); // a picture drawn anew has another one
  bar().hidden = false;
  const whole = await pass(ids, use, { want: ["logits"], rows: [n - 1], keep: "heard" });
  const found = [];
  for (let j = 0; j < n - 1; j += 1) {
    // a hidden token still sees itself, so all up to it is as before
    const { logits } = await pass(ids.slice(j + 1), use, {
      want: ["logits"],
      rows: [n - j - 2],
      from: { name: "heard", p: j + 1 },
      hide: j + 1,
    });
    if (number !== run) return;
    found.push(change.divergence(whole.logits, logits));
    bar().value = j + 1;
    status(`Hiding token ${j + 1} of ${n} …`);
  }
  found.push(0);
  heard = { [at]: found };
  busy = "";
  status("The page has hidden each token once.");
  await draw();
}

// The page "Read a config.json": a configuration in (known, dropped, pasted or typed), what follows for a length out.
// Its numbers and sentences are those of configuration.js; here is what is drawn, and what the reader does.
import { MARKS, Refused, TOKENS, facts, frequencies, known, parsed, rows, say, short, use, words } from "./configuration.js";

const root = document.getElementById("reading");
const language = document.documentElement.lang.startsWith("zh") ? "zh" : "en";
const said = (english, chinese) => (language === "zh" ? chinese : english);
const escape = (text) => String(text).replace(/[&<>"]/g, (c) => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" })[c]);
const LESSONS = ["", "1-over-squashing", "2-causal-attention", "3-representational-collapse", "4-counting", "5-rope-frequencies", "6-differential-transformer", "7-the-race"];
const ORDER = ["breaks", "late", "open", "holds", "note"];
const FIRST = "llama-3.1-8b", LEAST = 2 ** 8, SPAN = 12, STEPS = 1200; // the slider: a step is a 100th of a doubling
const TYPED = [
  ["num_hidden_layers", said("layers", "层数")], ["hidden_size", said("width", "宽度")], ["num_attention_heads", said("heads", "头数")],
  ["num_key_value_heads", said("key-value heads", "键值头数")], ["head_dim", said("width of a head", "每个头的宽度")], ["sliding_window", said("window", "窗口")],
  ["every", said("one layer in … sees all", "每几层中有一层能看到全部 token")], ["rope_theta", said("base of RoPE", "RoPE 的底数")],
  ["max_position_embeddings", said("context", "上下文长度")], ["vocab_size", said("vocabulary", "词表大小")],
];
const STATES = { breaks: said("breaks", "会失效"), late: said("late", "较晚才到达"), open: said("the file cannot say", "文件中没有"), holds: said("holds", "没问题"), note: "" };
const shown = { config: null, title: "", source: "", n: 100_000 };
const at = (selector) => root.querySelector(selector);

const frame = () => `<div class="live-row">
<label>${said("a well-known model", "常见的模型")} <select data-do="known"><option value="">${said("one of your own", "你自己的")}</option>${Object.entries(known()).map(([name, { title }]) => `<option value="${name}">${escape(title)}</option>`).join("")}</select></label>
<button type="button" data-do="choose">${said("Choose a config.json", "选择一个 config.json")}</button><input type="file" hidden data-do="file" accept=".json,application/json,text/plain">
<span>${said("or drop it anywhere on this page", "或者把文件拖到本页任意位置")}</span></div>
<details class="live-change" data-fold="paste"><summary>${said("Paste or change its text", "粘贴或修改文件内容")}</summary><label class="tall">config.json<textarea data-do="text" rows="8" spellcheck="false" autocomplete="off"></textarea></label></details>
<details class="live-change" data-fold="numbers"><summary>${said("Type a few numbers", "只填写几个数值")}</summary><div class="live-row">${TYPED.map(([name, label]) => `<label>${label} <input type="number" data-typed="${name}" min="1" inputmode="numeric"></label>`).join("")}</div></details>
<p class="live-error" role="alert"></p>
<div class="reading-found"><p class="reading-title"></p>
<div class="live-row"><label class="reading-length">${said("length of the text", "文本长度")} <input type="range" data-do="slide" min="0" max="${STEPS}" step="1"></label><label>n = <input type="number" data-do="n" min="2" max="${TOKENS}" step="1"> ${said("tokens", "个 token")}</label></div>
<p class="live-says" aria-live="polite"></p>
<h2>${said("Who reaches whom", "谁能到达谁")}</h2><div class="reading-layers"></div><p class="live-key"></p>
<div class="reading-clocks"></div>
<h2>${said("What follows", "由此可知")}</h2><ol class="reading-rows"></ol>
<h2>${said("What the file cannot say", "文件中没有的信息")}</h2><ul class="reading-unknown">${words().unknown[language].map((each) => `<li>${escape(each)}</li>`).join("")}</ul>
<p>${said("The same on the command line", "也可以在命令行中运行")}: <code>python -m course.report config.json --out reports --tokens <span class="reading-n"></span></code></p></div>`;

const toStep = (n) => Math.round((Math.log2(n / LEAST) * STEPS) / SPAN);
const toTokens = (step) => (step >= STEPS ? TOKENS : Math.round(LEAST * 2 ** ((step * SPAN) / STEPS)));
const room = () => Math.min(900, Math.max(300, at(".reading-layers").clientWidth || root.clientWidth));

/** The layers, the first one below: what the last token sees of each, and how far the first token can have come. */
function layerPicture(found) {
  const count = found.layers.length, wide = room(), high = Math.min(16, Math.max(1, 420 / count)), [l, r, t] = [58, wide - 8, 8];
  const n = found.tokens, x = (place) => l + (place / (n - 1)) * (r - l), y = (k) => t + (count - 1 - k) * high, bottom = t + count * high;
  const gap = high > 4 ? 1.5 : 0;
  const bars = found.layers.map(([mixes, window, rotates, chunked], k) => {
    const attends = mixes.startsWith("attention"), from = window === null ? 0 : chunked ? Math.floor((n - 1) / window) * window : Math.max(0, n - window);
    const left = Math.min(x(from), r - 3), colour = attends ? (rotates ? "blue" : "green") : "purple";
    return `<rect x="${l}" y="${y(k)}" width="${Math.max(0.5, x(found.arrives[k]) - l)}" height="${high - gap}" fill="var(--wash)"/><rect x="${left}" y="${y(k) + high * 0.2}" width="${r - left}" height="${Math.max(0.8, high * 0.6 - gap / 2)}" fill="var(--${colour})"/>`;
  }).join("");
  const steps = found.arrives.map((place, k) => `${k ? "L" : "M"}${x(place).toFixed(1)} ${(y(k) + high - gap).toFixed(1)}L${x(place).toFixed(1)} ${y(k).toFixed(1)}`).join("");
  const label = rows(found, language).find(({ key }) => key === "reach").text;
  return `<svg viewBox="0 0 ${wide} ${bottom + 44}" style="max-width:${wide}px" role="img" aria-label="${escape(label)}">${bars}<path d="${steps}" fill="none" stroke="var(--orange)" stroke-width="2.5"/>
<text class="quiet" x="${l - 6}" y="${y(0) + Math.max(high, 12)}" text-anchor="end">${said("layer 1", "第 1 层")}</text>${count > 1 ? `<text class="quiet" x="${l - 6}" y="${t + 12}" text-anchor="end">${count}</text>` : ""}
<text class="quiet" x="${l}" y="${bottom + 18}">${said("token 1", "第 1 个 token")}</text><text class="quiet" x="${r}" y="${bottom + 18}" text-anchor="end">${said(`token ${say(n)}`, `第 ${say(n)} 个 token`)}</text></svg>`;
}

/** The turns of each rotary pair over what its layers see, on a log scale; below the line a pair carries content. */
function clockPicture(each, theta) {
  const wide = Math.min(440, each.half ? (room() - 24) / 2 : room()), [l, r, t, b] = [58, wide - 10, 50, 190], [low, high] = [-5, 6];
  const turns = theta.map((angle) => (angle * each.limit) / (2 * Math.PI)), y = (value) => b - ((Math.min(high, Math.max(low, Math.log10(value || 1e-9))) - low) / (high - low)) * (b - t);
  const x = (i) => (theta.length > 1 ? l + 8 + (i / (theta.length - 1)) * (r - l - 16) : (l + r) / 2), part = words().parts[each.kind], who = part ? part[language] : "";
  const title = said(`rotations over ${say(each.limit)} tokens, by pair`, `${say(each.limit)} 个 token 内各旋转对转过的圈数`);
  return `<figure><svg viewBox="0 0 ${wide} ${b + 44}" style="max-width:${wide}px" role="img" aria-label="${escape(`${who}${title}: ${each.slow} / ${each.pairs} < 1`)}"><text x="4" y="16" font-weight="600">${escape(who.replace(/[:：]\s*$/, ""))}</text><text x="4" y="36">${escape(title)}</text>
<rect x="${l}" y="${y(1)}" width="${r - l}" height="${b - y(1)}" fill="var(--wash)"/><line class="axis" x1="${l}" x2="${r}" y1="${y(1)}" y2="${y(1)}"/>
${[-4, 0, 4].map((power) => `<text class="quiet" x="${l - 6}" y="${y(10 ** power) + 5}" text-anchor="end">${{ "-4": "0.0001", 0: "1", 4: "10,000" }[power]}</text>`).join("")}
${turns.map((value, i) => `<circle cx="${x(i).toFixed(1)}" cy="${y(value).toFixed(1)}" r="${theta.length > 80 ? 2 : 3}" fill="var(--${value < 1 ? "green" : "blue"})"/>`).join("")}
<text class="quiet" x="${l}" y="${b + 18}">${said("fastest pair", "最快的一对")}</text><text class="quiet" x="${r}" y="${b + 18}" text-anchor="end">${said("slowest", "最慢的")}</text><text class="quiet" x="${l}" y="${b + 38}">${said("shaded: less than one rotation", "阴影：不足一圈")}</text></svg></figure>`;
}

const key = (colour, text) => `<span><i style="background:var(--${colour});border-color:var(--${colour})"></i>${text}</span>`;

function draw() {
  const { config, n } = shown;
  if (!config) return;
  const found = facts(config, n), made = rows(found, language), kinds = found.layers, attends = ([mixes]) => mixes.startsWith("attention");
  at(".reading-title").innerHTML = `<b>${escape(shown.title)}</b>${shown.source ? ` · <a href="${escape(shown.source)}">${said("the published file", "公布的文件")}</a>` : ""}`;
  at("[data-do=slide]").value = toStep(n);
  at("[data-do=slide]").setAttribute("aria-valuetext", said(`${say(n)} tokens`, `${say(n)} 个 token`));
  if (document.activeElement !== at("[data-do=n]")) at("[data-do=n]").value = n;
  at(".reading-n").textContent = n;
  at(".live-says").textContent = short(made, n, language);
  at(".reading-layers").innerHTML = layerPicture(found);
  at(".live-key").innerHTML = [
    kinds.some((x) => attends(x) && x[2]) ? key("blue", said("what the last token sees, rotary", "最后一个 token 能看到的（使用 RoPE）")) : "",
    kinds.some((x) => attends(x) && !x[2]) ? key("green", said("what it sees, not rotary", "它能看到的（不使用 RoPE）")) : "",
    kinds.some((x) => !attends(x)) ? key("purple", said("other mixing", "以其他方式混合")) : "",
    key("orange", said("how far the first token can have come", "第一个 token 的信息最远能传到哪里")),
  ].join("");
  const turning = found.rope.filter(({ layers }) => layers);
  at(".reading-clocks").innerHTML = turning.map((each) => clockPicture({ ...each, half: turning.length > 1 && room() > 660 }, frequencies(config, each.kind, n))).join("");
  const sorted = made.map((row, k) => ({ ...row, k })).sort((a, b) => ORDER.indexOf(a.state) - ORDER.indexOf(b.state) || a.k - b.k);
  at(".reading-rows").innerHTML = sorted.map((row) => `<li data-key="${row.key}" data-state="${row.state}"><h3><span aria-hidden="true">${MARKS[row.state]}</span> ${escape(row.name)}${STATES[row.state] ? ` <small>${STATES[row.state]}</small>` : ""}</h3><p>${escape(row.text)}</p><p class="reading-why"><code>${escape(row.formula)}</code> <a href="${LESSONS[row.chapter]}/lesson.html">${said(`lesson ${row.chapter}`, `第 ${row.chapter} 课`)}</a></p></li>`).join("");
  root.dataset.drawn = String(n);
}

/** A refusal is a sentence; what was read before stays, and is marked as not of this text. */
function attempt(work) {
  const error = at(".live-error"), found = at(".reading-found");
  try {
    work();
    error.textContent = "";
    found.classList.remove("stale");
  } catch (problem) {
    if (!(problem instanceof Refused)) throw problem;
    error.textContent = said(`Not read: ${problem.said(language)}.`, `无法读入：${problem.said(language)}。`);
    found.classList.add("stale");
  }
}

function read(text, title, source = "", keep = false) {
  attempt(() => {
    const config = parsed(text);
    facts(config, shown.n); // may refuse, too, and then nothing changes
    Object.assign(shown, { config, source, title: title || config._name_or_path || config.model_type || "config.json" });
    draw();
    if (!keep) for (const [name] of TYPED) at(`[data-typed=${name}]`).value = name === "every" ? "" : config[name] ?? config.rope[""]?.[name === "rope_theta" ? "base" : ""] ?? "";
  });
}

function choose(name) {
  const { title, source, config } = known()[name];
  at("[data-do=text]").value = JSON.stringify(config, null, 1);
  read(at("[data-do=text]").value, title, source);
}

/** The text of a file, of which no more is read than a configuration can have; a folder cannot be read. */
async function open(file) {
  let text = "\u0000";
  try {
    text = await file.slice(0, 2_000_001).text();
  } catch {
    // then it is no text
  }
  at("[data-do=known]").value = "";
  at("[data-do=text]").value = /[\u0000-\u0008\uFFFD]/.test(text) ? "" : text;
  read(text, file.name);
}

function typed() {
  /** @type {any} */
  const given = {};
  for (const [name] of TYPED) {
    const { value } = at(`[data-typed=${name}]`);
    if (value !== "") given[name] = Number(value);
  }
  const { every, ...config } = given;
  if (every && config.sliding_window && config.num_hidden_layers >= 1 && config.num_hidden_layers <= 2000) {
    config.layer_types = Array.from({ length: config.num_hidden_layers }, (_, k) => ((k + 1) % every ? "sliding_attention" : "full_attention"));
  }
  at("[data-do=known]").value = "";
  at("[data-do=text]").value = JSON.stringify(config, null, 1);
  read(at("[data-do=text]").value, said("your numbers", "你填写的数值"), "", true);
}

function begin() {
  root.classList.add("live-app");
  root.innerHTML = frame();
  const ground = () => {
    const theme = document.documentElement.dataset.theme;
    root.dataset.ground = (theme ? theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches) ? "dark" : "light";
  };
  ground();
  new MutationObserver(ground).observe(document.documentElement, { attributes: true, attributeFilter: ["data-theme"] });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", ground);
  root.addEventListener("click", ({ target }) => target.dataset.do === "choose" && at("[data-do=file]").click());
  root.addEventListener("input", ({ target }) => {
    const what = target.dataset.do;
    if (target.dataset.typed) typed();
    if (what === "known" && target.value) choose(target.value);
    if (what === "file" && target.files.length) open(target.files[0]).then(() => { target.value = ""; });
    if (what === "text") {
      at("[data-do=known]").value = "";
      read(target.value, "");
    }
    if (what === "slide") attempt(() => { shown.n = toTokens(Number(target.value)); draw(); });
    if (what === "n") attempt(() => {
      const n = target.value === "" ? NaN : Number(target.value);
      facts(shown.config, n);
      shown.n = n;
      draw();
    });
  });
  at("[data-do=n]").addEventListener("change", draw);
  for (const kind of ["dragenter", "dragover"]) document.addEventListener(kind, (event) => { event.preventDefault(); root.classList.add("reading-over"); });
  document.addEventListener("dragleave", (event) => { if (!(/** @type {any} */ (event).relatedTarget)) root.classList.remove("reading-over"); });
  document.addEventListener("drop", (event) => {
    event.preventDefault();
    root.classList.remove("reading-over");
    const files = [...event.dataTransfer.files], text = event.dataTransfer.getData("text/plain");
    const file = files.find(({ name }) => name === "config.json") ?? files[0];
    if (file) open(file);
    else if (text) read((at("[data-do=text]").value = text), "");
  });
  addEventListener("resize", draw);
  // a link may say what is shown: #known=mistral-7b-v0.1&n=32768
  const asked = new URLSearchParams(location.hash.slice(1)), name = asked.get("known") ?? "", n = Math.round(Number(asked.get("n")));
  if (n >= 2 && n <= TOKENS) shown.n = n;
  at("[data-do=known]").value = Object.hasOwn(known(), name) ? name : FIRST;
  choose(at("[data-do=known]").value);
  root.dataset.ready = "";
}

async function start() {
  for (const name of ["live.css", "reading.css"]) {
    const style = document.createElement("link");
    style.rel = "stylesheet";
    style.href = new URL(name, import.meta.url).href;
    document.head.append(style);
  }
  const answer = await fetch(new URL("configurations.json", import.meta.url));
  if (!answer.ok) throw new Error(String(answer.status));
  use(await answer.json());
  begin();
}

if (location.protocol !== "file:") start().catch(() => { root.textContent = said("The table of configurations could not be loaded: configurations.json is not beside this page's scripts.", "无法载入配置表：configurations.json 不在本页脚本旁边。"); });

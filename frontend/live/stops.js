// Four stops of the machine on a decoder of one's own: what they change, what is seen then, and the part of the page for it.
// The weights stay as they are. Held against PyTorch by tests/test_train.py.
import { looked, placesOf, right, TASKS } from "./race.js";

const BITS = { bf16: 8, fp16: 11, fp32: 24 };
/** What a reader chooses at a stop: its label, its values and their names; the first is where it begins. */
const CHOICES = {
  hear: ["each layer sees", [8, 16, 4, 2].map((w) => [w, `${w} tokens`])],
  collapse: ["stored as", Object.keys(BITS).map((type) => [type, type])],
  turn: [
    "turns",
    [
      ["swap", "fast and slow pairs swapped"],
      ["none", "no pair rotates"],
      ...["the fastest pair", "the second pair", "the third pair", "the slowest pair"].map((pair, k) => [
        k,
        `${pair} does not rotate`,
      ]),
    ],
  ],
  subtract: ["λ", [0.5, 0.25, 0.8, 1].map((x) => [x, x])],
};
/** A first token and n equal ones, then the question; and its answer. */
const ROWS = {
  retrieval: (n) => [[13, ...Array(n).fill(19), 5], 1],
  last: (n) => [[1, 4, ...Array(n).fill(5), 3], 5],
  counting: (n) => [[1, 21, ...Array(n).fill(20)], 4],
};

function rounded(x, bits) {
  if (x === 0) return 0;
  const step = 2 ** (Math.floor(Math.log2(Math.abs(x))) - bits + 1), steps = x / step, low = Math.floor(steps);
  return (low + Number(steps - low > 0.5 || (steps - low === 0.5 && low % 2 !== 0))) * step;
}

/** How far the last question's logits move with each token's embedding: the norm of the Jacobian, as shares. */
function heard(own, { ids, n, asked }) {
  const sums = new Float64Array(n);
  own.forward(ids, 1, n, asked.slice(-1), 1, placesOf(own, n));
  for (let k = 0; k < own.vocabulary; k += 1) {
    own.logits.fill(0, 0, own.vocabulary);
    own.logits[k] = 1;
    own.backward(null);
    for (let c = 0; c < n * own.width; c += 1) sums[Math.floor(c / own.width)] += own.reached[c] ** 2;
  }
  const roots = [...sums].map(Math.sqrt), all = roots.reduce((a, b) => a + b, 0);
  return roots.map((x) => x / all);
}

/** The last question's weights in a layer, by map. */
function weighed(own, { ids, n, asked }, layer) {
  own.forward(ids, 1, n, asked.slice(-1), 1, placesOf(own, n));
  const maps = own.maps(layer), from = layer ? 0 : asked.at(-1) * 4;
  return [0, 1, 2, 3].map((m) => Array.from(maps.subarray((from + m) * n, (from + m + 1) * n)));
}

const best = (list) => list.indexOf(Math.max(...list));
/** What a choice at a stop sets in a decoder; `acted` sets it back. */
export const ACTS = {
  hear: (own, value) => own.layers.forEach((layer) => Object.assign(layer, { window: Number(value) })),
  turn: (own, value) =>
    own.turns.set(
      [...own.turns].map((x, k, all) =>
        value === "swap" ? all[3 - k] : value === "none" || value === String(k) ? 0 : x,
      ),
    ),
  subtract: (own, value) => Object.assign(own.act, { lambda: Number(value) }),
};

/** A stop on this decoder, at rows of n: what is seen as trained and then, and how often it is right. */
export function acted(own, { task, seed }, { stop, value, n }) {
  if (stop === "collapse") {
    const [one, more] = [n, n + 1].map((count) => {
      const [ids, target] = ROWS[task](count), all = ids.length, last = Int32Array.of(all - 1);
      own.forward(Int32Array.from(ids), 1, all, last, 1, placesOf(own, all));
      return {
        target,
        exact: [...own.states.subarray(0, own.width)],
        answer: best([...own.logits.subarray(0, own.vocabulary)]),
      };
    });
    const [was, now] = [one, more].map(({ exact }) => exact.map((x) => rounded(x, BITS[value]))),
      [own_, other] = [one, more].map(({ exact }) => Math.hypot(...exact.map((x, k) => x - was[k])));
    const words = TASKS[task].vocabulary,
      row = ROWS[task](2)[0].map((id) => words[id]);
    return {
      n,
      was,
      now,
      same: was.map((x, k) => x === now[k]),
      found: own_ < other,
      answers: [one, more].map(({ answer }) => words[answer]),
      right: words[one.target],
      row,
    };
  }
  if (stop === "turn" && !own.layers.some(({ turned }) => turned))
    throw new Error("This decoder does not rotate queries and keys. Choose RoPE as its positions, and train again.");
  const row = looked(task, n),
    source = row.sources.at(-1),
    lengths = [...new Set([16, 64, n])].sort((a, b) => a - b);
  const shares = () =>
    lengths.map((each) => {
      const found = right(own, task, seed, each, each > 128 ? 8 : undefined);
      return found.right / found.of;
    });
  const on = (maps) => maps.map((map) => map[source]),
    layers = [0, 1].map((layer) => weighed(own, row, layer)),
    layer = best(layers.map((maps) => Math.max(...on(maps))));
  const pairs = own.layers[layer].map === "difference",
    m = pairs ? best(on(layers[layer])) & 2 : best(on(layers[layer]));
  const see = () => (stop === "hear" ? heard(own, row) : weighed(own, row, layer)[m]),
    windows = own.layers.map(({ window }) => window),
    turns = own.turns.slice();
  const was = see(),
    before = shares(),
    second = layers[layer][pairs ? m + 1 : (m + 3) % 4];
  ACTS[stop](own, value);
  try {
    const now = stop === "subtract" ? was.map((x, j) => x - value * second[j]) : see(),
      after = shares();
    return {
      was,
      now,
      second,
      source,
      says: TASKS[task].says,
      layer,
      head: pairs ? m / 2 : m,
      shares: lengths.map((each, k) => [each, before[k], after[k]]),
    };
  } finally {
    own.layers.forEach((each, k) => Object.assign(each, { window: windows[k] }));
    own.turns.set(turns);
    own.act.lambda = null;
  }
}

// The page's part

const share = (x) => x.toFixed(2),
  number = (x) => String(Number(x.toPrecision(2))),
  percent = (x) => `${number(100 * x)}%`;
const noise = (map, source) => Math.hypot(...map.filter((_, k) => k !== source));
/** @type {Record<string, (found: any, value: string) => string>} */
const SAYS = {
  hear: ({ was, now, source, says }) =>
    `Of the influence on the last position, ${says} has ${percent(was[source])} as trained and ${percent(now[source])} now. An equal share would be ${percent(1 / was.length)}.`,
  collapse: ({ n, same, found, answers, right, row }, value) =>
    `We compare the last states after ${n} and after ${n + 1} equal tokens (two of them are ${row.join(" ")}). In ${value}, ${same.filter(Boolean).length} of ${same.length} numbers are the same. A search ${found ? "still tells" : "cannot tell"} the first state from the second. The decoder answers ${answers.join(" and ")}, and the right answer is ${right}.`,
  turn: ({ was, now, source, says }) =>
    `The last position gives ${says} ${percent(was[source])} of this head's attention as trained, and ${percent(now[source])} now.`,
  subtract({ was, now, second, source, says }) {
    const [left, kept] = [noise(now, source) / noise(was, source), now[source] / was[source]];
    const cosine =
      was.reduce((sum, x, k) => sum + (k === source ? 0 : x * second[k]), 0) /
      (noise(was, source) * noise(second, source));
    return `The noise is now ${number(left)} times as large, and the weight of ${says} is ${number(kept)} times as large, so it ${kept > left ? "gains" : "loses"}. The cosine of the two noises is ${share(cosine)}.`;
  },
};
const TITLES = {
  hear: ["influence of each token on the last position, as trained", "and now"],
  collapse: ["32 numbers of the last state", "and after one more token (squares: equal numbers)"],
  turn: ["its attention as trained", "and now"],
  subtract: ["its attention", "minus λ times the attention of the head before (grey: below 0)"],
};

/** Two rows of bars, one below the other; the frame's colour marks the answer. */
function bars({ was, now, source, same }, [one, two], room, alt) {
  const most = Math.max(...[...was, ...now].map(Math.abs)),
    signed = Boolean(same) || now.some((x) => x < 0),
    gap = room / was.length,
    tall = signed ? 36 : 66;
  const row = (list, base) =>
    list
      .map((x, k) => {
    const high = Math.max(0.5, (tall * Math.abs(x)) / most);
    return `<rect x="${(k * gap + gap / 10).toFixed(2)}" y="${(x < 0 ? base : base - high).toFixed(1)}" width="${(0.8 * gap).toFixed(2)}" height="${high.toFixed(1)}" fill="var(--${k === source ? "orange" : x < 0 && !same ? "quiet" : "blue"})"/>`;
      })
      .join("");
  const base = (top) => top + tall + 6,
    line = (y) => `<line class="axis" x1="0" x2="${room}" y1="${y}" y2="${y}"/>`;
  const text = (y, words) => `<text class="quiet" x="0" y="${y}">${words}</text>`,
    second = base(24) + (signed ? tall : 0) + 26;
  const marks = (same ?? [])
    .map((yes, k) =>
      yes
        ? `<rect x="${(k * gap + gap / 10).toFixed(2)}" y="${base(second) + tall + 6}" width="${(0.8 * gap).toFixed(2)}" height="10" fill="currentColor"/>`
        : "",
    )
    .join("");
  return `<svg viewBox="0 0 ${room} ${base(second) + (signed ? tall : 0) + 20}" style="max-width:${room}px" role="img" aria-label="${alt}">${text(14, one)}${row(was, base(18))}${line(base(18))}${text(second, two)}${row(now, base(second))}${line(base(second))}${marks}</svg>`;
}

/**
 * The part of the page: `ask` asks the worker, `length` is the row that is looked at. What it returns asks anew.
 * @param {HTMLElement} box
 * @param {{ ask: (call: string, rest: object) => Promise<any>, length: () => number }} page
 */
export function mounted(box, { ask, length }) {
  const select = (name, values) =>
    `<select data-act="${name}" aria-label="${name}">${values.map(([value, words]) => `<option value="${value}">${words}</option>`).join("")}</select>`;
  const at = (name) => /** @type {HTMLSelectElement} */ (box.querySelector(`[data-act=${name}]`));
  let turn = 0;
  const choices = () => {
    const [label, values] = CHOICES[at("stop").value];
    box.querySelector(".act-choice").innerHTML = `<label>${label} ${select("value", values)}</label>`;
  };
  const asked = async () => {
    const stop = at("stop").value,
      value = at("value").value,
      n = length(),
      mine = (turn += 1),
      says = box.querySelector(".live-says"),
      picture = box.querySelector(".act-picture");
    for (const each of [says, picture]) each.classList.add("stale");
    try {
      const found = await ask("act", { stop, value, n });
      if (mine !== turn) return;
      const rights = found.shares
        ? ` Accuracy at ${found.shares.map(([each, was, now]) => `${each}: ${share(was)}, now ${share(now)}`).join("; at ")}.`
        : "";
      const where = ["turn", "subtract"].includes(stop)
        ? ` (layer ${found.layer + 1}, head ${found.head + 1})`
        : "";
      says.textContent = SAYS[stop](found, value) + rights;
      picture.innerHTML = bars(
        found,
        TITLES[stop].map((words, k) => words + (k ? "" : where)),
        Math.max(280, Math.min(620, box.clientWidth)),
        `${TITLES[stop].join(", ")}: ${says.textContent}`,
      );
    } catch (error) {
      if (mine !== turn) return;
      says.textContent = error.message;
      picture.innerHTML = "";
    }
    for (const each of [says, picture]) each.classList.remove("stale");
    box.dataset.acted = `${stop} ${value} ${n}`;
  };
  box.innerHTML = `<h2>Change it, as the machine does</h2><p>Here you can try four stops of the <a href="../chapters/welcome.html">machine</a> on this decoder, at the length above. Nothing is trained, and the weights stay as they are. Orange marks the position that contains the answer.</p>
<div class="live-row"><label>stop ${select("stop", [
    ["hear", "2: influence"],
    ["collapse", "3: collapse"],
    ["turn", "5: positions"],
    ["subtract", "6: a difference"],
  ])}</label><span class="act-choice"></span></div><p class="live-says" aria-live="polite"></p><div class="act-picture"></div>`;
  choices();
  box.addEventListener("input", ({ target }) => {
    if (target === at("stop")) choices();
    asked();
  });
  return asked;
}

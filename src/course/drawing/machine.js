import { box, circle, clamp, fromLink, line, many, mount, path, place, said, say, scale, tell, text, toLink, verbatim } from "./kit.js";
import {
  adaptiveEntmax,
  averaged,
  cosineSum,
  entmax15,
  floats,
  frequencies,
  noiseLeft,
  roundTo,
  scalableSoftmax,
  softmax,
  softmaxOffByOne,
  spread,
  stickBreaking,
  topK,
  uniformInfluence,
} from "./mathematics.js";

// Two layers of two heads, states of 16 numbers, a first token and n ones.
const [LAYERS, WIDTH, BASE, GAIN, LEAD, MOST] = [2, 16, 1e4, 6, 4, 4096];
const STOPS = [
  "the guess",
  "over-squashing",
  "influence",
  "collapse",
  "counting",
  "positions",
  "difference",
  "what helps",
];
const PLACES = [
  "the narrow graph",
  "influence",
  "one vector",
  "the count",
  "positions",
  "the noise of the others",
];
const TASKS = [null, null, null, "counting", "last", "retrieval"];
const ASKED = { counting: "count", last: "copy the last digit", retrieval: "find a key" };
const HANGS = [
  null,
  ["squash", "1-over-squashing"],
  ["river", "2-causal-attention"],
  ["barcodes", "3-representational-collapse"],
  ["needle", "4-counting"],
  ["clocks", "5-rope-frequencies"],
  ["waves", "6-differential-transformer"],
  null,
];
const WEIGHTS = { toy: "set by hand", model: "of a model" };
const EDGES = { path: "the token before", all: "all before it", edge: "the token before, and one edge" };

const coded = (factor, shift) => Array.from({ length: WIDTH }, (_, k) => Math.cos(factor * k + shift));
const WORDS = { 1: coded(2, 0), "•": coded(3, 1), 0: coded(5, 2), end: coded(7, 3) };
const own = (object, key, other) => (Object.hasOwn(object, key) ? key : other);
/** Of a real model at stop 5: its words, and what two of its heads give them from the last one (`looks` of the numbers). */
let looked = /** @type {{ words: string[], heads: number[][], rows: number[][] } | null} */ (null);
const modelled = (s) => s.weights === "model" && Math.round(s.at) === 5 && looked !== null;
/** Where the model's last word stands before, as a part of the row: there is the orange token at first. */
const copy = () => looked.words.indexOf(looked.words.at(-1)) / looked.words.length;
const size = (s) => 1 + (modelled(s) ? looked.words.length : Math.round(s.n)); // tokens, the first one with them
const at = (s) => clamp(1 + Math.round(s.token * (size(s) - 1)), 1, Math.max(1, size(s) - 2)); // the token that is followed
/** What a token keeps of itself in a layer: of a sink that says nothing, the attention that goes there leaves the state as it is. */
const keeps = (s) => (s.quiet ? s.kept + (1 - s.kept) * (s.sink / 2) : s.kept);
/** The share of both heads together that brings the sink's own content. */
const brings = (s) => (s.quiet ? 0 : s.sink / 2);
const layer = (s, states) => {
  const n = states.length;
  if (s.edges === "all" || Math.round(s.at) !== 1) return spread(states, keeps(s), brings(s));
  return averaged(
    states,
    states.map((_, j) => [
      ...new Set([Math.max(0, j - 1), j, ...(s.edges === "edge" && j === n - 1 ? [at(s)] : [])]),
    ]),
  );
};
/** What all states hold of one token, before the layers and after each. */
const levels = (s, token, n) => {
  const found = [Array.from({ length: n }, (_, j) => Number(j === token))];
  for (let k = 0; k < LAYERS; k += 1) found.push(layer(s, found[k]));
  return found;
};
/** The last vector in a number type: of the first token this share, of the ones the rest. */
const vector = (share, type) => WORDS[1].map((one, k) => roundTo(one + share * (WORDS["•"][k] - one), type));
const next = (state) =>
  softmax(Object.values(WORDS).map((word) => 0.5 * word.reduce((sum, x, k) => sum + x * state[k], 0)));
const pair = (s) => {
  const share = levels(s, 0, size(s) + 1)[LAYERS];
  const states = [share[size(s) - 1], share[size(s)]].map((x) => vector(x, s.type));
  return { share, states, same: states[0].map((x, k) => x === states[1][k]) };
};
/** The first n at which the first token's weight is that of one token more. */
const reach = (type) => {
  let n = 1;
  while (n < 2 * MOST && roundTo(1 / (n + 1), type) !== roundTo(1 / (n + 2), type)) n += 1;
  return n < 2 * MOST ? n : null;
};
/** The head for the token before: over the distances up to each, the sum of its weights as parts of the one there. */
const nearness = new Map();
const nearby = (pairs) => {
  if (!nearness.has(pairs[0])) {
    let sum = 0;
    nearness.set(
      pairs[0],
      Array.from(
        { length: MOST + 1 },
        (_, d) => (sum += Math.exp(GAIN * (cosineSum(d - 1, WIDTH, BASE, ...pairs) - 4))),
      ),
    );
  }
  return nearness.get(pairs[0]);
};
/** Inside a layer: one head for the place before, one for a content; each with four of the eight pairs. */
const halves = (s) => (s.swap ? [[4, 8], [0, 4]] : [[0, 4], [4, 8]]);
const turned = (s) => {
  const n = size(s);
  const far = n - 1 - at(s);
  if (modelled(s))
    return { far, fast: [], slow: [], logit: 0, near: looked.rows[0][n - 2], found: looked.rows[1][at(s)] };
  const [fast, slow] = halves(s);
  const logit = GAIN * cosineSum(far, WIDTH, BASE, ...slow);
  return { far, fast, slow, near: 1 / nearby(fast)[n - 1], logit, found: 1 / (1 + (n - 1) * Math.exp(-logit)) };
};
const wave = (k, step) => Math.SQRT2 * Math.cos(2 * Math.PI * ((k * step) % 1));
/** Two heads of one layer: the answer's lead, and noise. */
const maps = (s) => {
  const [n, p] = [size(s), at(s)];
  const noise = [0.6180339887, 0.4142135624].map((step) => Array.from({ length: n }, (_, k) => wave(k + 1, step)));
  const one = softmax(noise[0].map((x, k) => x + LEAD * Number(k === p)));
  const two = softmax(
    noise[0].map(
      (x, k) => s.agree * x + Math.sqrt(1 - s.agree ** 2) * noise[1][k] + LEAD * Number(s.both && k === p),
    ),
  );
  const rest = one.map((x, k) => x - s.lam * two[k]);
  const others = (map) => map.filter((_, k) => k !== p);
  const norm = (map) => Math.sqrt(map.reduce((sum, x) => sum + x * x, 0));
  const [a, b] = [others(one), others(two)];
  const cosine = a.reduce((sum, x, k) => sum + x * b[k], 0) / (norm(a) * norm(b));
  return {
    one,
    two,
    rest,
    cosine,
    left: noiseLeft(cosine, s.lam, norm(b) / norm(a)),
    answer: rest[p] / one[p],
    weight: one[p],
  };
};

/** What a part of the race changes in the machine: its description, the rotary pairs that do not rotate, the base, a
 * slope, the window of each layer and whether the layer has no positions, the function from logits to weights, and the
 * fraction of a second, equal map that is subtracted. */
const SCALED = (logits) => scalableSoftmax(logits, 1 / Math.log(16));
const MIXED = { window: [8, 0], free: [0, 1] };
const PARTS = {
  RoPE: { tells: "With RoPE, head 1 looks near by position and head 2 looks far by content." },
  "p-RoPE": { tells: "The two slowest pairs do not rotate.", still: 2 },
  "larger base": { tells: "All pairs but the fastest rotate more slowly.", base: 5e5 },
  ALiBi: { tells: "Nothing rotates, and each logit falls with the distance of its key, faster in head 1.", slopes: [1 / 16, 1 / 256] },
  NoPE: { tells: "Without positions, head 1 can no longer find the previous token.", free: [1, 1] },
  "sliding window": { tells: "The lower layer sees 8 tokens.", window: [8, 0] },
  "local RoPE, global NoPE": {
    tells: "The lower layer uses RoPE and sees 8 tokens, and the upper layer sees all tokens and has no positions.",
    ...MIXED,
  },
  "top 8 keys": { tells: "The 8 largest logits share all attention.", weigh: topK },
  "scalable softmax": { tells: "Logits grow with the logarithm of n.", weigh: SCALED },
  "sparse (entmax 1.5)": { tells: "Small weights become 0.", weigh: entmax15 },
  "NoPE, scalable softmax": {
    tells: "The decoder has no positions, and its logits grow with the logarithm of n.",
    free: [1, 1],
    weigh: SCALED,
  },
  "NoPE, adaptive entmax": {
    tells: "The decoder has no positions, and small weights become 0.",
    free: [1, 1],
    weigh: (logits) => adaptiveEntmax(logits, 0.1),
  },
  "NoPE, stick-breaking": {
    tells: "Without positions, the nearest key takes its weight first, and the other keys share the rest.",
    free: [1, 1],
    weigh: stickBreaking,
  },
  "local RoPE, global NoPE + scalable softmax": {
    tells: "The lower layer has a window, the upper layer has no positions, and logits grow with the logarithm of n.",
    ...MIXED,
    weigh: SCALED,
  },
  differential: { tells: "We subtract 0.8 times an equal map, and grey weights are below 0.", minus: 0.8 },
  "NoPE, differential": {
    tells: "Without positions, we subtract 0.8 times an equal map, and grey weights are below 0.",
    free: [1, 1],
    minus: 0.8,
  },
  "off-by-one softmax": { tells: "An extra logit of 0 takes some of the weight and adds nothing.", weigh: softmaxOffByOne },
};
const UNDRAWN = "The figure does not draw this change, so the arcs are those of RoPE.";
/** The last token's weights with a part exchanged, in each layer: those of head 1, for the token before, and of head 2, for the orange token's content. */
const exchanged = (s, n, p) => {
  const { base = BASE, still = 0, slopes, window = [], free = [], weigh = softmax, minus = 0 } = PARTS[s.part] ?? {};
  const [fast, slow] = halves(s);
  return Array.from({ length: LAYERS }, (_, k) => {
    const from = window[k] ? Math.max(0, n - window[k]) : 0;
    const far = Array.from({ length: n - from }, (__, j) => n - 1 - from - j);
    const turns = !free[k] && !slopes;
    const near = far.map((d) =>
      turns ? GAIN * (cosineSum(d - 1, WIDTH, base, ...fast) - 4) : slopes ? -slopes[0] * d : 0,
    );
    const found = far.map(
      (d) =>
        (n - 1 - d === p
          ? GAIN * (turns ? cosineSum(d, WIDTH, base, slow[0], slow[1] - still) + still : 4)
          : 0) -
        2 * GAIN -
        (slopes ? slopes[1] * d : 0),
    );
    return [near, found].map((logits) => [
      ...Array(from).fill(0),
      ...weigh(logits).map((x) => x - minus / (n - from)),
    ]);
  });
};
/** What the arcs of a stop show: in each layer the last token's weights in head 1 and in head 2, at stop 6 the second map as it is subtracted. */
let [weighedFor, weighed] = ["", []];
export const weights = (s) => {
  const [n, p, stop] = [size(s), at(s), Math.round(s.at)];
  const key = [stop, n, p, s.part, s.swap, s.kept, s.sink, s.lam, s.agree, s.both, modelled(s)].join();
  if (key === weighedFor) return weighed;
  weighedFor = key;
  if (stop === 7) return (weighed = exchanged({ part: s.part }, n, p));
  if (modelled(s)) {
    const none = Array(n).fill(0); // each of the two heads is in a layer of its own
    return (weighed = [[looked.rows[0], none], [none, looked.rows[1]]]);
  }
  if (stop === 5) return (weighed = exchanged({ swap: s.swap }, n, p));
  const { one, two } = stop === 6 ? maps(s) : {};
  const equal = Array(n).fill((1 - s.kept) / n);
  const heads = one
    ? [one, two.map((x) => s.lam * x)]
    : [equal, equal.map((x, j) => (1 - s.sink) * x + s.sink * (1 - s.kept) * Number(j === 0))];
  return (weighed = Array(LAYERS).fill(heads));
};
/** A head that was opened: its largest weights in the last token's row, each [whose, weight], and what the others sum to. */
const numbered = (s) => {
  const [n, p, map] = [size(s), at(s), weights(s)[modelled(s) ? s.head - 1 : 0][s.head - 1]];
  const order = map.map((_, j) => j).sort((a, b) => map[b] - map[a]);
  const top = order.slice(0, 3).filter((j) => map[j] > map[order[n - 1]]);
  const whose = (j) =>
    j === p
      ? "The orange token"
      : j === n - 1
        ? "The last token itself"
        : j === n - 2
          ? "The token before"
          : j
            ? `Token ${j}`
            : "The first token";
  const rest = order.slice(top.length);
  return [
    ...top.map((j) => [whose(j), map[j]]),
    [
      rest.length > 1 ? `The other ${rest.length} together` : "The other token",
      rest.reduce((sum, j) => sum + map[j], 0),
    ],
  ];
};

// The machine is drawn into a box, which the camera moves; a lens above it shows what happens there.
const ROOM = 8;
const camera = (s, stop, w, h) => {
  const [m, wide] = [ROOM + 14, w >= 520];
  // the lens above is as high as what it shows; an opened head has more to show
  const spare = Math.max(0, h - 420);
  const short = s.head ? 0 : [0, 0, 0, 0, wide ? 62 : 0, wide ? 62 : 26][stop] || 0;
  const low = (wide ? 92 : 62) + spare + short;
  const tall = (wide ? 132 : 78) + spare;
  const whole = [m, 104, w - 2 * m, h - 104 - 52];
  const under = [m, h - low - 52, w - 2 * m, low];
  return [
    [m, h - 60, w - 2 * m, 2],
    whole,
    [m, 104, w - 2 * m, h - 104 - 52 - 84],
    under,
    under,
    under,
    under,
    [m, h - tall - 52, w - 2 * m, tall],
  ][stop];
};
const view = (s, w, h) => {
  const [a, b] = [Math.floor(s.at), Math.ceil(s.at)].map((stop) => camera(s, stop, w, h));
  const [x, y, wide, high] = a.map((from, k) => from + (b[k] - from) * (s.at - Math.floor(s.at)));
  const n = size(s);
  const most = w >= 520 ? 32 : 24;
  const inner = Math.min(n, most) - 2;
  const edges =
    n <= most
      ? Array.from({ length: n + 1 }, (_, k) => k)
      : [0, ...Array.from({ length: inner + 1 }, (_, k) => 1 + Math.round((k * (n - 2)) / inner)), n];
  const columns = edges
    .slice(0, -1)
    .map((from, k) => ({ from, to: edges[k + 1], x: x + (wide * k) / Math.max(1, edges.length - 2) }));
  const of = (token) => columns.find((c) => token < c.to);
  return { x, y, w: wide, h: high, bottom: y + high, level: (k) => y + high * (1 - k / LAYERS), columns, of, sum: (row, c) => row.slice(c.from, c.to).reduce((p, q) => p + q, 0) };
};
const arc = (x0, y0, x1, y1, bend = 0.6) => `M${[x0, y0].map(Math.round).join(" ")}C${[x0, y0 + bend * (y1 - y0), x1, y0 + 0.5 * (y1 - y0), x1, y1].map(Math.round).join(" ")}`;
const wide = (d, width, colour, lit) => path(d, colour, lit, `style="stroke-width:${Math.max(0.15, Math.round(50 * width) / 50)}"`);
/** Strokes as wide as what they stand for, [way, width], those of one width as one path. */
const strokes = (list, colour, lit) => {
  const ways = new Map();
  for (const [d, width] of list) {
    const key = Math.round(50 * width) / 50;
    ways.set(key, (ways.get(key) ?? "") + d);
  }
  return [...ways].map(([width, d]) => wide(d, width, colour, lit)).join("");
};
const bars = (list, colour, lit) =>
  path(
    list
      .map(([x, base, w, tall]) => `M${place(x)} ${place(base)}v${place(-tall)}h${place(w)}v${place(tall)}z`)
      .join(""),
    colour,
    lit,
  );
/** How much of a stop's scene is to be seen: it is gone before the next one comes. */
const shown = (s, stop) => clamp(1.4 - 3 * Math.abs(s.at - stop), 0, 1);

const machine = (s, w, h) => {
  const v = view(s, w, h);
  const n = size(s);
  const p = at(s);
  const [first, last] = [v.columns[0], v.columns.at(-1)];
  const grown = clamp(s.at, 0, 1);
  const held = levels(s, p, n);
  const row = [1, LAYERS].map((layers) => uniformInfluence(n, layers, keeps(s), brings(s)));
  const graph = Math.round(s.at) === 1 && s.edges !== "all";
  const parts = [];
  // residual streams
  parts.push(
    `<g data-part="streams">${path(v.columns.map((c) => `M${place(c.x)} ${place(v.bottom)}V${place(v.y)}`).join(""), "faint", "", 'style="stroke-width:1"')}</g>`,
  );
  if (grown > 0.5) {
    const ink = Math.max(12, Math.min(30, v.h / 6));
    // the weights of the last token alone: what the others hold is not told
    const given = Math.round(s.at) > 4;
    for (let k = 0; k < LAYERS; k += 1) {
      const [y0, y1] = [v.level(k), v.level(k + 1)];
      if (graph) {
        parts.push(
          path(
            v.columns
              .slice(1)
              .map((c, j) => arc(v.columns[j].x, y0, c.x, y1))
              .join(""),
            "blue thin",
            "arcs",
          ),
        );
        if (s.edges === "edge") parts.push(wide(arc(v.of(p).x, y0, last.x, y1), 4, "orange", "arcs"));
        continue;
      }
      weights(s)[k].forEach((map, head) => {
        const sums = v.columns.map(
          (c) =>
            /** @type {[string, number]} */ ([
              arc(c.x, y0, last.x, y1, [0.35, 0.8][head]),
              v.sum(map, c) * ink,
            ]),
        );
        parts.push(
          strokes(
            sums.filter(([, x]) => x > 0.02),
            ["blue", "purple"][head],
            `head${head + 1}`,
          ),
          strokes(
            sums.flatMap(([d, x]) => (x < -0.02 ? [[d, -x]] : [])),
            "grey",
            `head${head + 1}`,
          ),
        );
      });
      parts.push(wide(`M${place(last.x)} ${place(y0)}V${place(y1)}`, 1 + keeps(s) * ink, "ink", "streams"));
      if (given) continue;
      // the way of one token's ink
      const way = v.columns.map((c) => {
        let sum = 0;
        for (let j = Math.max(c.from, p); j < c.to; j += 1)
          sum += (k ? (j === n - 1 ? 1 : 0) * held[1][p] : row[0][j]) * ((1 - s.sink / 2) / (j + 1));
        return sum;
      });
      const top = Math.max(...way);
      if (top > 0 && !k)
        parts.push(
          strokes(
            v.columns.flatMap((c, j) =>
              way[j] > 0.02 * top ? [[arc(v.of(p).x, y0, c.x, y1), 3.5 * (way[j] / top)]] : [],
            ),
            "orange",
            "followed",
          ),
        );
    }
    const discs = (given ? held.slice(0, 1) : held).flatMap((states, k) =>
      v.columns.map(
        (c) =>
          /** @type {[string, number]} */ ([
            `M${place(c.x)} ${place(v.level(k))}h.01`,
            c === v.of(p) && !k ? 1 : v.sum(states, c) / (c.to - c.from),
          ]),
      ),
    );
    parts.push(
      strokes(
        discs.flatMap(([d, share]) => (share > 0 ? [[d, 18 * Math.sqrt(share)]] : [])),
        "orange round",
        "followed",
      ),
    );
  }
  return { v, p, n, first, last, held, row: row[1], drawn: parts.join("") };
};

/** What the arcs bring of the orange token, layer by layer: [way, share], in the second layer to the last token. */
export const brought = (s, w, h) => {
  const v = view(s, w, h);
  const [n, p] = [size(s), at(s)];
  const [own, last] = [v.of(p), v.columns.at(-1)];
  if (Math.round(s.at) > 4)
    return weights(s).map((heads, k) =>
      heads.map((map, head) => [
        arc(own.x, v.level(k), last.x, v.level(k + 1), [0.35, 0.8][head]),
        Math.max(0, map[p]),
      ]),
    );
  const states = levels(s, p, n)[1];
  // a layer adds up what it is given, so a column alone gives what it brings
  const alone = (c) => layer(s, states.map((x, j) => (j >= c.from && j < c.to ? x : 0)))[n - 1];
  return [
    v.columns.map((c) => [arc(own.x, v.level(0), c.x, v.level(1)), v.sum(states, c) / (c.to - c.from)]),
    v.columns.map((c) => [arc(c.x, v.level(1), last.x, v.level(2)), alone(c)]),
  ];
};
/** Drops whose areas are the shares; one that would be too small to be seen is faint instead. */
const drops = (s, w, h) =>
  brought(s, w, h)
    .flatMap((ways, k) =>
      ways.map(([way, share]) => {
        const r = 15 * Math.sqrt(share);
        if (r < 0.15) return "";
        const strength = clamp(r / 4, 0.2, 1);
        return `<g style="opacity:${strength.toFixed(2)}"><circle r="${Math.max(4, r).toFixed(1)}" class="drop forange" style="offset-path:path('${way}');animation-delay:${k}s"/></g>`;
      }),
    )
    .join("");

const tokens = (s, m, w) => {
  const { v, n, p, first, last } = m;
  if (modelled(s)) {
    const label = (c, k) => (k ? looked.words[k - 1] : "•");
    return `<g data-part="tokens">${v.columns
      .map((c, k) => verbatim(c.x, v.bottom + (k % 2 ? 32 : 17), label(c, k), `mid ${k === p || k === n - 1 ? "bold" : ""} small`))
      .join("")}</g>`;
  }
  const gap = v.columns.length > 1 ? v.columns[1].x - v.columns[0].x : 40;
  const y = v.bottom + 18;
  const room = gap >= 10;
  const signs =
    s.at < 0.98
      ? ""
      : v.columns
          .map((c) =>
            c === first
              ? text(c.x, y, "•", "mid bold")
              : room
                ? text(c.x, y, "1", `mid ${c === v.of(p) ? "bold" : "small"}`)
                : line(c.x, y - 9, c.x, y - 1, c === v.of(p) ? "orange" : "ink thin"),
          )
          .join("");
  const each = Math.max(...v.columns.map((c) => c.to - c.from));
  const ones = many(Math.round(s.n), "one");
  const label = secret(s)
    ? ""
    : each === 1
      ? ones
      : w >= 520
        ? `${ones}, a line for up to ${each} of them`
        : `${ones}, up to ${each} a line`;
  return `<g data-part="tokens">${signs}${s.at < 0.98 ? "" : text(clamp(first.x - 6, 4, w), y + 20, Math.round(s.at) === 3 ? "" : "first token", "small quiet")}${text(Math.min(last.x + 6, w - 4), y + 20, label, "small end quiet")}</g>`;
};

/** The ones of the guess: they fall one after the other onto piles, and the piles sink into the row. */
const falling = (s, m, w, h) => {
  if (s.at >= 0.98) return "";
  const { v, n } = m;
  const fallen = Math.max(s.fallen, clamp(s.at / 0.6, 0, 1));
  const sunk = clamp((s.at - 0.4) / 0.5, 0, 1);
  const inRow = (high) => Math.floor((w - 2 * ROOM) / (0.68 * high));
  const room = (high) => inRow(high) * Math.floor((h - 110) / high);
  let high = 40;
  while (high > 16 && room(high) < n - 1) high -= 0.5; // as large as the stage has room for all of them
  const [across, count] = [inRow(high), Math.min(n - 1, room(high))];
  const look = high > 25 ? "big mid" : "mid";
  const each = Math.min(13, (0.3 * h) / Math.max(1, (count / v.columns.length)));
  const piled = new Map();
  const ones = Array.from({ length: count }, (_, k) => {
    const token = 1 + Math.floor((k * (n - 1)) / count);
    const c = v.of(token);
    const below = piled.get(c) ?? 0;
    piled.set(c, below + 1);
    // the lower a row, the earlier it falls
    const share = clamp(1.6 * fallen - 0.6 * (1 - k / count), 0, 1);
    const [x, y] = [ROOM + 6 + (k % across) * 0.68 * high, 24 + Math.floor(k / across) * high];
    const foot = v.bottom + 18 - below * each * (1 - sunk);
    return text(
      x + (c.x - x) * share,
      y + (foot - y) * share ** 2,
      "1",
      share > 0.5 ? "mid" : look,
      token === m.p ? "followed" : "",
    );
  });
  return ones.join("") + text(v.columns[0].x, v.bottom + 18, "•", "mid bold");
};

/** The last vector: its numbers as stripes, blue above 0 and orange below, as strong as large; black where `same`. */
const barcode = (state, x, y, w, h, same) =>
  state.map((value, k) => {
    const each = w / WIDTH;
      return box(
        x + k * each,
        y,
        each - 1,
        h,
        same?.[k] ? "fink" : value > 0 ? "fblue" : "forange",
        same?.[k] ? "same" : "vector",
        same?.[k] ? "" : `style="opacity:${Math.round(20 + 80 * Math.min(1, Math.abs(value))) / 100}"`,
      );
    })
    .join("");
/** What the model was measured to have after as many ones, n at most: the length, and every third number, 0 to 7 from below 0 to above it or "." where one more 1 leaves its bits; of all numbers how many it leaves. */
const code = (data, n) => Object.entries(data.codes ?? {}).filter(([length]) => Number(length) <= n).at(-1);
const stripes = (digits, x, y, w, h) =>
  [...".01234567"].map((c) => {
    const each = w / digits.length;
    const d = [...digits].map((digit, k) => (digit === c ? `M${place(x + (k + 0.5) * each)} ${y}v${h}` : "")).join("");
    const far = c === "." ? 1 : Math.abs(Number(c) - 3.5) / 3.5;
      return (
        d &&
        path(
          d,
          c === "." ? "ink" : c > "3" ? "blue" : "orange",
          "vector",
          `style="stroke-width:${place(each)};opacity:${place(far)}"`,
        )
      );
    })
    .join("");
const DIGITS = { bf16: 4, fp16: 5, fp32: 9 };
/** Numbers below their stripes, as many as there is room for, with the digits that tell two numbers of the type apart. */
const numbers = (state, x, y, w, type) => {
  const [each, digits] = [w / WIDTH, DIGITS[type]];
  const [half, step] = [4 * (digits + 1), Math.ceil((8.2 * (digits + 3)) / each)];
  const first = Math.ceil(half / each - 0.5);
  return state
    .map((value, k) =>
      (k - first) % step || (k + 0.5) * each + half > w + 8 || k < first
        ? ""
        : text(x + (k + 0.5) * each, y, value.toPrecision(digits).replace("-", "−"), "small mid"),
    )
    .join("");
};
const words = (chances, x, y, w) =>
  Object.keys(WORDS)
    .map(
      (word, k) =>
        box(x + k * (w / 4), y - 34 * chances[k], w / 4 - 8, 34 * chances[k], "fgreen", "next") +
        text(x + k * (w / 4) + w / 8 - 4, y + 15, word, "small mid", "next"),
    )
    .join("");
const crown = (s, m, w) => {
  const { states: [state] } = pair(s);
  const [across, x] = [w >= 520 ? 230 : 150, Math.min(w - ROOM, m.last.x + 8)];
  return [
    text(x, 17, `last vector, in ${s.type}`, "small end"),
    barcode(state, x - across, 25, across, 26),
    numbers(state, x - across, 68, across, s.type),
    line(m.last.x, 78, m.last.x, m.v.y, "ink thin"),
    text(ROOM, 17, "next token", "small"),
    words(next(state), ROOM, 60, w >= 520 ? 150 : 110),
  ].join("");
};

const lens = (m, w, target) =>
  `${box(ROOM / 2, 4, w - ROOM, m.v.y - 34, "faint", "", 'rx="8"')}${target ? path(`M${place(target - 12)} ${place(m.v.y - 30)}L${place(target)} ${place(m.v.y - 6)}L${place(target + 12)} ${place(m.v.y - 30)}`, "faint") : ""}`;
const row = (x, y, mark, words, note, w) =>
  `${circle(x + 8, y - 5, 7, mark === "lit" ? "fgreen" : mark === "open" ? "grey thin dash" : "grey")}${mark === "lost" ? line(x + 3.5, y - 9.5, x + 12.5, y - 0.5, "grey") : ""}${text(x + 24, y, words, mark === "lit" ? "bold" : "")}${note ? text(w - ROOM - 6, y, note, "small end quiet") : ""}`;

/** What can be opened at stops 5 and 6, as [x, y, w, h]: the two heads, or the two maps; on a phone one that is open takes the place of both. */
const panels = (s, v, w) => {
  const high = (v.y - 52) / 3;
  if (Math.round(s.at) === 6)
    return [0, 1].map((k) => (s.head ? [v.x, 8, v.w, high] : [v.x, 8 + k * high, v.w, high]));
  return w >= 520
    ? [
        [ROOM + 10, 12, w / 2 - 40, 150],
        [w / 2 + 8, 12, w / 2 - 26, 150],
      ]
    : [0, 70].map((y) => [ROOM + 10, 12 + (s.head ? 0 : y), w - 36, 66]);
};
/** Where the drawing of the stop's chapter begins, [x, y, w, h]: at the last vector, at the lens or at a clock or a map. */
const doors = (s, v, w) => {
  const stop = Math.round(s.at);
  if (s.at !== stop || !HANGS[stop] || s.head) return [];
  if (stop > 4)
    return panels(s, v, w).map(([x, y, wide, high]) => [x, y + 24, wide, high - 24]); // above is its opener
  if (stop > 2) return [[ROOM / 2, 4, w - ROOM, v.y - 34]];
  const across = w >= 520 ? 230 : 150;
  return [[Math.min(w - ROOM, v.columns.at(-1).x + 8) - across, 2, across, 70]];
};
/** What leads through a door, on a page that has the film. */
let enter = /** @type {((area: number[]) => void) | null} */ (null);
/** @type {(s: any, k: number, area: number[]) => string} */
const opener = (s, k, [x, y, w]) =>
  text(x + w, y + 18, s.head === k ? "▾ weights" : "▸ weights", "small end quiet halo");
/** @type {(s: any, area: number[]) => string} */
const opened = (s, [x, y, w, h]) =>
  numbered(s)
    .map(
      ([whose, weight], k) =>
        text(x, y + h + 18 * (k + 1), whose, "small") +
        text(x + w, y + h + 18 * (k + 1), say(weight), "small bold end"),
    )
    .join("");

const SCENES = [
  () => "",
  (s, m, w) => {
    const share = m.held[LAYERS].at(-1);
    return crown(s, m, w) + text(m.last.x - 14, m.v.y + 4, `${say(100 * share, 2)}%`, "bold end halo", "followed");
  },
  (s, m, w, h) => {
    const top = h - 26;
    // of a column its mean, but of the orange token's its own share, which the sentence gives
    const sums = m.v.columns.map((c) => (c === m.v.of(m.p) ? m.row[m.p] : m.v.sum(m.row, c) / (c.to - c.from)) * m.n);
    const most = Math.max(...sums);
    const each = Math.max(2, (m.v.w / m.v.columns.length) * 0.7);
    const y = (x) => 52 * (x / most);
    return (
      crown(s, m, w) +
      [true, false]
        .map((its) =>
          bars(
            m.v.columns.flatMap((c, k) =>
              its === (c === m.v.of(m.p)) ? [[c.x - each / 2, top, each, Math.max(0.8, y(sums[k]))]] : [],
            ),
            its ? "forange" : "fblue",
            "bars",
          ),
        )
        .join("") +
      line(m.v.x, top - y(1), m.v.x + m.v.w, top - y(1), "grey thin dash") +
      text(
        m.v.x + m.v.w,
        top + 18,
        `dashed: an equal share; tallest bar: ${say(most, 2)} ×`,
        "small end quiet",
      )
    );
  },
  (s, m, w, h, data) => {
    const { states, same } = pair(s);
    const [x, across, roomy] = [ROOM + 8, w - 2 * ROOM - 16, m.v.y > 250];
    const high = roomy ? 16 : 14;
    const one = same.every(Boolean);
    const chances = states.map(next);
    const gap = Math.max(...chances[0].map((p, k) => Math.abs(p - chances[1][k])));
    const n = Math.round(s.n);
    let y = 24;
    const lines = [];
    states.forEach((state, k) => {
      lines.push(
        text(x, y, k ? `after ${n + 1}` : `last vector after ${many(n, "one")}, in ${s.type}`, "small"),
        barcode(state, x, y + 7, across, high, same),
        roomy ? numbers(state, x, y + high + 24, across, s.type) : "",
      );
      y += high + (roomy ? 47 : 22);
    });
    const [length, [digits]] = code(data, n) ?? [0, [""]];
    if (digits)
      lines.push(
        text(x, y, `measured: ${data.model} after ${many(Number(length), "one")}, in bf16`, "small"),
        stripes(digits, x, y + 7, across, high),
      );
    y += high + 26;
    const readers = [
      ["readout in full precision", "lit", "two"],
      [`readout of all 16 numbers in ${s.type}`, one ? "lost" : "lit", one ? "one" : "two"],
      [
        "readout of the next token",
        gap < 0.005 ? "lost" : "lit",
        gap === 0 ? "one" : `${say(100 * gap, 2)}% apart`,
      ],
    ];
    readers.forEach(([name, mark, note], k) => lines.push(row(x, y + 4 + k * 19, mark, name, note, w)));
    return lens(m, w, m.last.x) + lines.join("");
  },
  (s, m, w) => {
    const n = Math.round(s.n);
    const r = Math.min(84, 0.13 * w, (m.v.y - 110) * 0.8);
    const [cx, cy] = [ROOM + 20 + r, 34 + r];
    const angle = Math.PI * (s.first ? n / (n + 1) : 1);
    const dial =
      path(`M${cx - r} ${cy}A${r} ${r} 0 0 1 ${cx + r} ${cy}`, "faint") +
      line(
        cx,
        cy,
        cx - 0.86 * r * Math.cos(angle),
        cy - 0.86 * r * Math.sin(angle),
        "blue thick round",
        "needle",
      ) +
      circle(cx, cy, 5, "fink") +
      text(cx, cy + 22, "weight of all ones", "small mid") +
      text(cx, cy + 42, s.first ? (n / (n + 1)).toFixed(4) : "1", "mid bold");
    const [x0, x1, y0] = [cx + r + 34, w - ROOM - 16, 62];
    if (!s.first)
      return (
        lens(m, w, m.last.x) +
        dial +
        text((x0 + x1) / 2, y0 + 20, "no other token:", "mid quiet") +
        text((x0 + x1) / 2, y0 + 42, "every n, one vector", "mid bold")
      );
    const [a, b] = [1 / (n + 1), 1 / (n + 2)];
    const kept = [a, b].map((x) => roundTo(x, s.type));
    const step = floats(b, 1, s.type, 2).reduce((p, q) => Math.abs(q - p), 0) || 1;
    const span = Math.max(6 * step, 2.4 * (a - b));
    const fine = span / step < 60;
    const to = scale([(a + b) / 2 - span / 2, (a + b) / 2 + span / 2], [x0, x1]);
    const ticks = fine
      ? floats(Math.max(1e-9, (a + b) / 2 - span / 2), (a + b) / 2 + span / 2, s.type, 80)
          .map((x) => `M${place(to(x))} ${y0 + 24}v14`)
          .join("")
      : "";
    const same = kept[0] === kept[1];
    return (
      lens(m, w, m.first.x) +
      dial +
      text(x0 - 8, y0 - 32, "weight of the first token", "small") +
      text(x1 + 8, y0 - 10, w > 520 ? "blue: n ones; orange: n + 1" : "", "small end quiet") +
      line(x0, y0 + 38, x1, y0 + 38, "ink") +
      path(ticks, "ink thin") +
      [
        { x: a, name: "blue" },
        { x: b, name: "orange" },
      ]
        .map(
          ({ x, name }, k) =>
            line(to(x), y0, to(x), y0 + 38, `${name} thick`, "ruler") +
            circle(clamp(to(kept[k]), x0, x1), y0 + 52 + (same ? 11 * k : 0), 5, `f${name}`, "ruler"),
        )
        .join("") +
      text(
        (x0 + x1) / 2,
        y0 + 92,
        same ? `in ${s.type} one number` : `in ${s.type} two numbers`,
        "mid bold",
      ) +
      text(
        (x0 + x1) / 2,
        y0 + 112,
        fine ? "ticks: the numbers there are" : "ticks too close to draw",
        "small mid quiet",
      )
    );
  },
  (s, m, w, h, data) => {
    const found = turned(s);
    const thetas = frequencies(WIDTH, BASE);
    const roomy = w >= 520;
    const r = roomy ? Math.min(36, (w / 2 - 40) / 9) : 17;
    const areas = panels(s, m.v, w);
    const head = (k, pairs, name, colour, result, note) => {
      if (!roomy && s.head && s.head !== k) return "";
      const [x, y] = [areas[k - 1][0], areas[k - 1][1] + 18];
      const clocks = thetas.slice(...pairs).map((theta, j) => {
        const [cx, cy, turn] = [x + r + j * (2 * r + 9), y + r + 8, found.far * theta];
        return (
          circle(cx, cy, r, "faint") +
          line(cx, cy, cx + r * Math.cos(turn), cy, `${colour} thick`, `clocks head${k}`) +
          line(cx, cy, cx + r * 0.9 * Math.cos(turn), cy - r * 0.9 * Math.sin(turn), "ink round", `clocks head${k}`)
        );
      });
      return (
        text(x, y, name, "small bold") +
        opener(s, k, areas[k - 1]) +
        (s.head === k ? opened(s, areas[k - 1]) : "") +
        clocks.join("") +
        (roomy
          ? text(x, y + 2 * r + 34, result, "bold") + text(x, y + 2 * r + 55, note, "small quiet")
          : text(x + 8 * r + 36, y + r + 4, result.split(": ")[1], "bold") +
            text(x + 8 * r + 36, y + r + 22, result.split(": ")[0], "small quiet"))
      );
    };
    if (modelled(s)) {
      const named = looked.heads.map(([layer, its]) => `layer ${layer}, head ${its}`);
      // the weights of a head as bars, in place of the clocks
      const row = (k, fill) => {
        const [x, y] = [areas[k][0], areas[k][1] + 18 + 2 * r + 12];
        const each = (roomy ? w / 2 - 48 : 8 * r + 27) / looked.rows[k].length;
        if (!roomy && s.head && s.head !== k + 1) return "";
        return [true, false]
          .map((its) =>
            bars(
              looked.rows[k].flatMap((weight, j) => (its === (j === m.p) ? [[x + j * each, y, 0.75 * each, Math.max(1, (2 * r + 2) * weight)]] : [])),
              its ? "forange" : fill,
              `head${k + 1}`,
            ),
          )
          .join("");
      };
      return (
        lens(m, w, m.last.x) +
        head(1, [0, 0], named[0], "blue", `the token before: ${say(100 * found.near, 2)}%`, `weights of ${data.model}`) +
        head(2, [0, 0], named[1], "purple", `orange, ${found.far} away: ${say(100 * found.found, 2)}%`, `the first token: ${say(100 * looked.rows[1][0], 2)}%`) +
        row(0, "fblue") +
        row(1, "fpurple")
      );
    }
    return (
      lens(m, w, m.last.x) +
      head(
        1,
        found.fast,
        `head 1, ${s.swap ? "slow" : "fast"} pairs`,
        "blue",
        `the token before: ${say(100 * found.near, 2)}%`,
        `the hands: ${many(found.far, "token")} away`,
      ) +
      head(
        2,
        found.slow,
        `head 2, ${s.swap ? "fast" : "slow"} pairs`,
        "purple",
        `orange, ${found.far} away: ${say(100 * found.found, 2)}%`,
        `logit ${say(found.logit, 2)}, the others' 0`,
      )
    );
  },
  (s, m, w) => {
    const found = maps(s);
    const high = (m.v.y - 52) / 3;
    const each = Math.max(2, (m.v.w / m.v.columns.length) * 0.7);
    const rows = [
      ["map 1", found.one, "fblue"],
      [`λ × map 2`, found.two.map((x) => s.lam * x), "fpurple"],
      ["difference", found.rest, "fgreen"],
    ];
    const sums = rows.map(([, map]) => m.v.columns.map((c) => m.v.sum(map, c)));
    const most = Math.max(...sums.flat().map(Math.abs));
    const areas = panels(s, m.v, w);
    return lens(m, w, m.last.x) + (s.head ? opened(s, areas[0]) : "") + rows.map(([name, , fill], k) => {
      if (s.head && k !== s.head - 1) return "";
      const base = 8 + high * (s.head ? 0.86 : k + (k === 2 ? 0.72 : 0.86));
      const unit = high * 0.6;
      const tall = (x) => (unit * x) / most;
      // the orange token alone is orange; what else its column holds stands on it
      const own = Number(rows[k][1][m.p]);
      const others = m.v.columns.map((c, j) => {
        const left = c === m.v.of(m.p) ? sums[k][j] - own : sums[k][j];
        return [c.x - each / 2, base - (c === m.v.of(m.p) && left * own > 0 ? tall(own) : 0), each, tall(left)];
      });
      return line(m.v.x, base, m.v.x + m.v.w, base, "faint") + bars(others, fill, `map${k}`) + bars([[m.v.of(m.p).x - each / 2, base, each, tall(own)]], "forange", `map${k}`) + text(m.v.x + 12, base - unit + 4, String(name), "small bold halo") + (k < 2 ? opener(s, k + 1, areas[k]) : "");
    }).join("");
  },
  (s, m, w, h, data) => {
    const runs = data.race?.[s.part] ?? {};
    const step = Math.min(27, (m.v.y - 66) / 6);
    const lines = PLACES.map((name, k) => {
      const [right, lit] = runs[TASKS[k]] ?? [];
      const task = TASKS[k];
      const note = !task
        ? w > 520
          ? "no task in the race"
          : "no task"
        : right === null || right === undefined
          ? w > 520
            ? `${ASKED[task]}: not learned`
            : "not learned"
          : `${w > 520 ? `${ASKED[task]}: ` : ""}right ${Math.round(100 * right)}%`;
      return `<g data-part="place${k + 1}">${row(ROOM + 8, 48 + k * step, !task ? "open" : lit ? "lit" : "lost", `${k + 1} ${w > 520 || name.length < 18 ? name : "noise"}`, note, w)}</g>`;
    });
    // each lamp at its place, as parts of the picture; the thin line leads to what it stands for
    const early = (m.v.columns[Math.min(3, m.v.columns.length - 1)].x - m.v.x) / m.v.w;
    const spots = [
      [0.45, 0.24, 0.45, 0],
      [early + 0.12, 0.7, early, 0.7],
      [1, 1],
      [0.06, 0.24, 0, 0],
      [0.75, 0.3],
      [0.8, 0.78],
    ];
    const lamps = spots.map(([x, y, toX = x, toY = y], k) => {
      const lit = runs[TASKS[k]]?.[1];
      const [cx, cy] = [m.v.x + x * m.v.w, m.v.bottom - y * m.v.h];
      const [tx, ty] = [m.v.x + toX * m.v.w, m.v.bottom - toY * m.v.h];
      const lead = toX === x && toY === y ? "" : line(cx, cy, tx, ty, "grey thin") + circle(tx, ty, 3, "fgrey");
      return `<g data-part="place${k + 1}">${lead}${circle(cx, cy, 11, lit ? "fgreen" : "fground grey")}${text(cx, cy + 5, k + 1, `small bold mid ${lit ? "over" : ""}`)}</g>`;
    });
    return (
      lens(m, w) +
      text(
        ROOM + 8,
        25,
        w > 520 ? "small decoders trained to 16 tokens, tested at 128" : "trained to 16 tokens, tested at 128",
        "small quiet",
      ) +
      lines.join("") +
      lamps.join("")
    );
  },
];

const percent = (x) => Math.round(100 * x);
/** What a real model or a trained one does at a stop, measured beforehand, and the page that measures it. */
const measured = (data, stop) => {
  const race = Object.values(data.race ?? {});
  const [plain, differed] = [data.race?.RoPE?.retrieval?.[0], data.race?.differential?.retrieval?.[0]];
  return {
    1: [
      "1-over-squashing/lab",
      data.tree &&
        `Measured: on trees of 16 leaves, graph networks that train for a minute at most fit up to ${percent(data.tree.graph)}% of the examples. If the root attends to each leaf directly, they fit ${percent(data.tree.direct)}%.`,
    ],
    2: [
      "2-causal-attention/lab",
      `Measured: before training, the ${data.layers} layers of ${data.model} keep on average ${data.kept} of a state. After training, ${data.sink}% of its heads give the first token more than 0.3 of their attention.`,
    ],
    3: [
      "3-representational-collapse/lab",
      `Measured: at n = ${data.misread} ones, the bf16 state of ${data.model} is for the first time nearer to the exact state of another n than to its own exact state. Another readout may still tell the two apart.`,
    ],
    4: [
      "4-counting/lab",
      data.counted
        ? `Measured: if we ask ${data.model} to count ones, it is right up to ${data.counted}.`
        : `Measured: if we ask ${data.model} to count ones, it is right at none of the lengths that we tried.`,
    ],
    5: [
      "5-rope-frequencies/lab",
      `Measured: ${data.previous} heads of ${data.model} attend to the previous token.`,
    ],
    6: [
      "7-the-race/lesson",
      differed &&
        `Measured: we trained small decoders on up to 16 tokens and tested them at 128. With differential attention, the decoder finds the value of a key in ${percent(differed)}% of the rows, and with RoPE alone in ${percent(plain)}%.`,
    ],
    7: [
      "7-the-race/lesson",
      `Measured: of the ${race.length} parts that we tried, ${race.filter((runs) => runs.last[1] && runs.retrieval[1]).length} light both positions and the noise, and ${race.filter((runs) => runs.counting[1]).length || "none"} ${race.filter((runs) => runs.counting[1]).length > 1 ? "light" : "lights"} the count.`,
    ],
  }[stop];
};
const named = (page) => (page.endsWith("lab") ? `Lab ${page[0]}` : "The race");
const into = (stop) => `Into the drawing of chapter ${stop} →`;
const BACK = "← Back to the machine";
const [SHARE, COPIED, ABOVE] = ["Share this state", "The address is copied", "The address bar has it"];
const [WHOLE, START] = [
  "One small decoder reads a first token and n ones, and each chapter looks at one place where the decoder loses something.",
  "Take the whole tour of eight stops, from the guess",
];
/** What the reader guessed of the row of ones on the page: null where nobody asks, 0 as long as there is no guess. */
const guess = () => {
  const field = typeof document === "undefined" ? { value: 0 } : document.querySelector(".guess input");
  return field && Number(field.value);
};
const secret = (s) => s.at < 0.98 && guess() === 0;
const only = (...stops) => (s) => !stops.includes(Math.round(s.at));
const asShare = (x) => x.toFixed(2);
const guessed = () => {
  if (!guess() || typeof document === "undefined") return "";
  const [told, right] = [guess(), document.querySelector(".guess .ones").textContent.length];
  return ` You said ${told}: ${told === right ? "right" : `the row has ${right}, you were ${Math.abs(right - told)} ${told < right ? "short" : "over"}`}.`;
};
const BEGIN = {
  at: 0,
  fallen: 0,
  n: 314,
  token: 0.6,
  edges: "all",
  kept: 0,
  sink: 0,
  quiet: true,
  type: "bf16",
  first: true,
  swap: false,
  head: 0,
  weights: "toy",
  lam: 0.8,
  agree: 0.9,
  both: false,
  part: "RoPE",
  lit: "",
};
const calm = () => matchMedia("(prefers-reduced-motion: reduce)").matches;
/** Let the ones of the guess fall, and put what the models answered where they stood. */
const fall = (hand, stays, field) => {
  const told = field.closest(".guess")?.querySelector("details");
  if (!field.value || !told) return hand.set({});
  hand.glide({ at: 0, fallen: 1 }, 1800);
  const chart = told.querySelector("svg[role=img]");
  if (!chart || stays.dataset.told) return; // it is there, or soon will be
  stays.dataset.told = "";
  const answers = document.createElement("div");
  answers.className = "guess machine-answers";
  setTimeout(
    () => {
      answers.append(told.querySelector("summary").textContent, chart);
      stays.append(answers);
    },
    calm() ? 0 : 1900,
  );
};
/** The sentences of a text that set the machine, with what they set: the page gives each its state (`sphinx_ext/machine.py`). */
const film = (section) =>
  [...section.querySelectorAll(".film-step")].map((node) => ({
    node,
    state: JSON.parse(node.dataset.state),
  }));
export const render = mount({
  name: "machine",
  words: { "last vector": "vector", tokens: "tokens", streams: "streams", "orange token": "followed" },
  start: (data) => {
    looked = data.looks ?? null;
    return { ...BEGIN };
  },
  tidy: (s, data) => ({
    ...s,
    weights: only(5)(s) || s.swap || !looked ? "toy" : own(WEIGHTS, s.weights, "toy"),
    at: clamp(s.at, 0, STOPS.length - 1),
    fallen: clamp(s.fallen, 0, 1),
    n: clamp(s.n, 1, MOST),
    token: clamp(s.token, 0, 1),
    edges: own(EDGES, s.edges, "all"),
    kept: Math.round(s.at) === 2 ? clamp(s.kept, 0, 0.95) : 0,
    sink: Math.round(s.at) === 2 ? clamp(s.sink, 0, 0.95) : 0,
    head: only(5, 6)(s) ? 0 : clamp(Math.round(s.head), 0, 2),
    type: own(DIGITS, s.type, "bf16"),
    lam: clamp(s.lam, 0, 1),
    agree: clamp(s.agree, 0, 1),
    part: own(data.race ?? {}, s.part, "RoPE"),
  }),
  controls: (data) => [
    { kind: "steps", key: "at", options: STOPS },
    {
      key: "n",
      label: "ones n",
      min: 0,
      max: Math.log2(MOST),
      step: 0.001,
      whole: true,
      to: (x) => Math.round(2 ** x),
      from: Math.log2,
      show: (x) => say(Math.round(x), 4),
      hidden: (s) => secret(s) || modelled(s),
    },
    { kind: "choice", key: "edges", label: "hears", options: Object.entries(EDGES), hidden: only(1) },
    { key: "kept", label: "share kept", min: 0, max: 0.95, step: 0.05, show: asShare, hidden: only(2) },
    { key: "sink", label: "sink in head 2", min: 0, max: 0.95, step: 0.05, show: asShare, hidden: only(2) },
    { kind: "switch", key: "quiet", label: "the sink says nothing", hidden: only(2) },
    {
      kind: "choice",
      key: "type",
      label: "stored as",
      options: Object.keys(DIGITS).map((type) => [type, type]),
      hidden: only(3, 4),
    },
    { kind: "switch", key: "first", label: "a first token", hidden: only(4) },
    {
      kind: "choice",
      key: "weights",
      label: "weights",
      options: [
        ["toy", WEIGHTS.toy],
        ["model", `of ${data.model}`],
      ],
      // the orange token is the first copy of the model's last word
      pick: (value) => ({ weights: value, swap: false, head: 0, token: value === "model" ? copy() : BEGIN.token }),
      hidden: (s) => only(5)(s) || !data.looks,
    },
    { kind: "switch", key: "swap", label: "swap fast and slow pairs", hidden: (s) => only(5)(s) || modelled(s) },
    { key: "lam", label: "λ", min: 0, max: 1, step: 0.05, show: asShare, hidden: only(6) },
    { key: "agree", label: "shared part of the logits", min: 0, max: 1, step: 0.05, show: asShare, hidden: only(6) },
    { kind: "switch", key: "both", label: "both see the answer", hidden: only(6) },
    {
      kind: "choice",
      key: "part",
      label: "swapped part",
      options: Object.keys(data.race ?? { RoPE: 0 }).map((name) => [name, name]),
      hidden: only(7),
    },
  ],
  height: (w) => (w >= 520 ? 420 : 330),
  narrow: 519,
  items: (s, data, w, h) => {
    const v = view(s, w, h);
    const [n, p] = [size(s), at(s)];
    const x = v.of(p).x;
    /** @type {any[]} */
    const heads = only(5, 6)(s)
      ? []
      : panels(s, v, w).flatMap((area, k) =>
          s.head && s.head !== k + 1 && (w < 520 || Math.round(s.at) === 6)
            ? []
            : [
                {
                  id: `head${k + 1}`,
                  area,
                  label: `${Math.round(s.at) === 6 ? "Map" : "Head"} ${k + 1}: its weights as numbers`,
                  pressed: s.head === k + 1,
                  press: (now) => ({ head: now.head === k + 1 ? 0 : k + 1 }),
                },
              ],
        );
    const stop = Math.round(s.at);
    for (const [k, area] of enter ? doors(s, v, w).entries() : [])
      heads.push({ id: `door${k}`, area, label: into(stop), title: into(stop), press: () => enter(area) });
    if (s.at > 6.5 || x < 0 || n < 3) return heads;
    const nearest = (px) => ({
      token: clamp(
        (v.columns.reduce((best, c) => (Math.abs(c.x - px) < Math.abs(best.x - px) ? c : best)).from - 1) /
          (n - 1),
        0,
        1,
      ),
    });
    return [
      ...heads,
      { id: "row", area: [0, v.bottom - 4, w, 28], flat: true, drag: nearest },
      {
        id: "token",
        x,
        y: v.bottom,
        r: 20,
        knob: 6,
        look: "orange",
        flat: true,
        label: "token that is followed",
        range: [p, 1, n - 2],
        value: `token ${p}`,
        drag: nearest,
        key: (step, now) => ({ token: clamp((clamp(at(now) + step, 1, n - 2) - 1) / (n - 1), 0, 1) }),
      },
    ];
  },
  picture: (s, data, w, h) => {
    const m = machine(s, w, h);
    const scenes = SCENES.map((scene, k) =>
      shown(s, k) > 0
        ? `<g style="opacity:${place(100 * shown(s, k)) / 100}">${scene(s, m, w, h, data)}</g>`
        : "",
    );
    return `<g>${m.drawn}</g>${tokens(s, m, w)}${falling(s, m, w, h)}${scenes.join("")}`;
  },
  sentence: (s, data) => {
    const n = Math.round(s.n);
    const p = at(s);
    const all = size(s);
    const stop = Math.round(s.at);
    if (stop === 0)
      return secret(s)
        ? "The row becomes tokens, and a first token stands before them. How many ones are there? Type your guess."
        : `${many(n, "one")} become ${many(n, "token")}, and a first token stands before them.${guessed()}`;
    if (stop === 1) {
      const share = levels(s, p, all)[LAYERS].at(-1);
      const back = many(all - 1 - p, "token");
      if (share === 0) return `Nothing of the orange token, ${back} back, reaches the last vector, because two layers reach only two tokens back.`;
      return `The orange token, ${back} back, makes up ${say(100 * share, 2)}% of the last vector. ${s.edges === "edge" ? "One edge in the right place brings it there." : s.edges === "all" ? `All ${all} tokens share this one vector of ${WIDTH} numbers.` : ""}`.trim();
    }
    if (stop === 2) {
      const heard = uniformInfluence(all, LAYERS, keeps(s), brings(s));
      return `In the last vector, ${say(100 * heard[0], 2)}% comes from the first token, ${say(100 * heard[p], 2)}% from the orange token and ${say(100 * heard[all - 1], 2)}% from the last token itself. With ${all} tokens, an equal share is ${say(100 / all, 2)}%.`;
    }
    if (stop === 3) {
      const { same } = pair(s);
      const count = same.filter(Boolean).length;
      const [length, [, left, of]] = code(data, n) ?? [0, ["", 0, 0]];
      const beside = of
        ? ` Measured in bf16: the last states of ${data.model} after ${length} ones and after ${Number(length) + 1} ones agree in ${left} of ${of} numbers.`
        : "";
      return (
        (count === WIDTH
          ? `After ${n} ones and after ${n + 1} ones, all ${WIDTH} numbers are the same in ${s.type}, so no readout of these numbers can tell the two inputs apart.`
          : count === 0
            ? `After ${n} ones and after ${n + 1} ones, all ${WIDTH} numbers differ in ${s.type}.`
            : `After ${n} ones and after ${n + 1} ones, ${count} of ${WIDTH} numbers are the same in ${s.type} (black), but the other numbers still tell the two inputs apart.`) +
        beside
      );
    }
    if (stop === 4) {
      if (!s.first)
        return `Without the first token, the weights of the ones always add up to 1, so the last vector is the same for 1, ${n} or any number of ones.${guessed()}`;
      const end = reach(s.type);
      const same = roundTo(1 / (n + 1), s.type) === roundTo(1 / (n + 2), s.type);
      return `The first token is of another kind than the ones, and its weight is 1/${n + 1}. In ${s.type}, this weight ${same ? "cannot tell" : "tells"} ${n} ones from ${n + 1}.${end ? ` It first fails at ${end} ones, and beyond that it fails at some lengths but not at all of them.` : ""}${guessed()}`;
    }
    if (s.head)
      return [
        stop === 5
          ? `Head ${s.head} in numbers.`
          : s.head === 1
            ? "Map 1 in numbers."
            : "λ times map 2 in numbers.",
        ...numbered(s).map(([whose, weight]) => `${whose}: ${say(weight)}.`),
      ].join(" ");
    if (modelled(s)) {
      const f = turned(s);
      const [[one, its], [two, other]] = looked.heads;
      return `${data.model}, layer ${one}, head ${its}: ${say(100 * f.near, 2)}% of its attention goes to the token before. Layer ${two}, head ${other}: ${say(100 * f.found, 2)}% goes to the orange token, ${f.far} back, and ${say(100 * looked.rows[1][0], 2)}% to the first token.`;
    }
    if (stop === 5) {
      const f = turned(s);
      return `Head 1 gives ${say(100 * f.near, 2)}% of its attention to the previous token. Head 2 gives ${say(100 * f.found, 2)}% to the orange token, which is ${many(f.far, "token")} back.${s.swap ? " With the hands swapped, neither head does its work." : ""}`;
    }
    if (stop === 6) {
      const f = maps(s);
      return `The subtraction leaves ${say(100 * f.left, 2)}% of the noise and ${say(100 * f.answer, 2)}% of the answer's weight, so ${Math.abs(f.left - f.answer) < 1e-9 ? "the answer neither gains nor loses" : f.left < f.answer ? "the answer gains" : "the answer loses"}. The cosine of the two noises is ${say(f.cosine, 2)}${s.lam ? `, and it must exceed ${say(s.lam / 2, 2)} if the noises are equally large` : ""}.`;
    }
    const runs = data.race?.[s.part] ?? {};
    const asked = TASKS.filter(Boolean).length;
    const those = (want) =>
      TASKS.flatMap((task, k) =>
        task && Boolean(runs[task]?.[1]) === want ? [`${PLACES[k]} (${k + 1})`] : [],
      )
        .join(", ")
        .replace(/, (?=[^,]*$)/, " and ");
    return `${PARTS[s.part]?.tells ?? UNDRAWN} Of the ${asked} places that the race tests, this design lights ${those(true) || "none"}. It leaves ${those(false) || "none"} dark.`;
  },
  notes: (data) =>
    [1, 2, 3, 4, 5, 6, 7].flatMap((stop) => [
      measured(data, stop)[1] || "",
      named(measured(data, stop)[0]),
      into(stop),
      BACK,
      WHOLE,
      START,
      SHARE,
      COPIED,
      ABOVE,
      "← → a sentence back or on",
      "Whoever sent you this guessed 200.",
    ]),
  live: (hand, figure, on, home) => {
    const stops = [...document.querySelectorAll(".machine-stops > section")];
    const told = figure.closest(".machine-page") ? stops : [];
    // the film: a sentence sets what it speaks of, and what other sentences set is as in the beginning
    const films = told.map((section) => (calm() ? [] : film(section)));
    const settings = Object.fromEntries(
      ["lit", ...films.flat().flatMap(({ state }) => Object.keys(state))].map((key) => [key, BEGIN[key]]),
    );
    let [played, cut, dropping] = ["0.0", 0, 0];
    const stage = figure.querySelector(".drawing-stage");
    // once a state stands, the orange token's colour runs along its arcs, and the next picture takes it away
    const run = (ms) => {
      clearTimeout(dropping);
      if (calm()) return;
      dropping = setTimeout(() => {
        const { width, height } = stage.viewBox.baseVal;
        if (hand.state.at >= 1 && !(hand.state.at % 1))
          stage.firstElementChild.insertAdjacentHTML("beforeend", drops(hand.state, width, height));
      }, ms + 100);
    };
    const show = (stop, k = 0) => {
      if (played === `${stop}.${k}`) return;
      played = `${stop}.${k}`;
      films.flat().forEach(({ node }) => node.classList.toggle("now", node === films[stop][k]?.node));
      clearTimeout(cut);
      run(1000);
      const [from, next] = [hand.state.at, { at: stop, ...settings, ...films[stop][k]?.state }];
      if (calm() || Math.abs(from - stop) <= 1) hand.glide(next, from === stop ? 600 : 900);
      else {
        // over the stops between it cuts, when nothing of a scene is to be seen
        const way = Math.sign(stop - from);
        hand.glide({ at: Math.round(from) + way / 2 }, 300);
        cut = setTimeout(() => {
          hand.set({ at: stop - way / 2 });
          hand.glide(next, 600);
        }, 330);
      }
    };
    // what was measured, and the chapter's own drawing one click away, with the way back
    const note = (stop) => {
      const [lab, words] = measured(hand.data, stop) ?? [];
      return words
        ? `${tell(words)}${home ? ` <a href="${home}${said("chapters/")}${lab}.html">${said(named(lab))}</a>` : ""}`
        : "";
    };
    const hangs = (stop) => {
      const [name, folder] = HANGS[stop] ?? [];
      const there = document.querySelector(`figure[data-drawing="${name}"]`);
      const address = `${said("chapters/")}${folder}/lesson.html#drawing=${name}&from=${stop}`;
      if (!there) return name && home ? home + address : "";
      if (!there.querySelector(".machine-back"))
        there
          .querySelector("figcaption")
          ?.insertAdjacentHTML(
            "beforeend",
            ` <a class="machine-back" href="#${(figure.id ||= "machine")}">${said(BACK)}</a>`,
          );
      return `#${(there.id ||= `drawing-${name}`)}`;
    };
    if (!told.length && !figure.closest(".reveal"))
      figure.insertAdjacentHTML(
        "afterbegin",
        `<p class="machine-whole">${tell(WHOLE)}${home ? ` <a href="${home}${said("chapters/welcome.html")}">${said(START)}</a>` : ""}</p>`,
      );
    const linked = () => location.hash.match(/^#stop-([0-7])$/);
    if (told.length) {
      const stays = figure.parentNode;
      // a head, a vector or a clock grows to the stage, and is the chapter's drawing
      enter = (area) => {
        const address = hangs(Math.round(hand.state.at));
        if (!address) return;
        const { x, y, width, height } = stage.viewBox.baseVal;
        const [from, begun] = [[x, y, width, height], performance.now()];
        const grow = (now) => {
          const share = calm() ? 1 : clamp((now - begun) / 600, 0, 1) ** 2;
          stage.setAttribute("viewBox", from.map((a, k) => a + (area[k] - a) * share).join(" "));
          if (share < 1) return requestAnimationFrame(grow);
          location.href = address;
          // who comes back finds the whole stage
          setTimeout(() => stage.setAttribute("viewBox", from.join(" ")), 1000);
        };
        requestAnimationFrame(grow);
      };
      hand.set({});
      const beside = () => told[0].getBoundingClientRect().left >= stays.getBoundingClientRect().right;
      const top = () => (parseFloat(getComputedStyle(stays).top) || 0) + 4;
      // where the text begins below what stays
      const under = () => stays.offsetHeight + top();
      // until when a button's stop holds, while the text scrolls past the others
      let chosen = 0;
      // a link to a stop, too, leaves its heading below what stays
      const margins = () => {
        const padded = parseFloat(getComputedStyle(document.documentElement).scrollPaddingTop) || 0;
        told.forEach((section) => { section.style.scrollMarginTop = `${(beside() ? top() : under()) - padded}px`; });
      };
      const go = (stop, behavior) => {
        margins();
        told[stop].scrollIntoView({ behavior });
      };
      on(document, "click", (event) => {
        if (!event.target.closest('a[href*="#stop-"]')) return;
        margins();
        chosen = performance.now() + 800;
      }, true);
      on(window, "hashchange", () => {
        if (!linked()) return;
        const stop = Number(linked()[1]);
        hand.set({ at: stop });
        requestAnimationFrame(() => requestAnimationFrame(() => go(stop, "auto")));
      });
      // The height on the screen at which we assume that the reader reads. If the machine is beside the text, the position
      // of this height within the stop selects a sentence. If the machine is above the text, we select the sentence that
      // is at this height.
      const mark = () =>
        beside()
          ? 0.475 * innerHeight
          : Math.min(under() + 0.3 * Math.max(0, innerHeight - under()), innerHeight - 24);
      const reading = (stop) => {
        const steps = films[stop];
        const { top: from, height } = told[stop].getBoundingClientRect();
        const by = beside()
          ? Math.floor(((mark() - from) / height) * steps.length)
          : steps.findLastIndex(({ node }) => node.getBoundingClientRect().top <= mark());
        return clamp(by, 0, Math.max(0, steps.length - 1));
      };
      // a text waits beside the machine as long as its film plays; one that is taller than the screen waits with its end in sight
      const fit = () => told.forEach((section, stop) => {
        const text = /** @type {HTMLElement} */ (section.querySelector(".stop-text"));
        if (!text || !films[stop].length) return;
        section.classList.add("filmed");
        section.style.setProperty("--steps", films[stop].length);
        text.style.top = `${Math.min(top() + 0.08 * innerHeight, innerHeight - text.offsetHeight - 16)}px`;
      });
      on(window, "resize", fit);
      let [scrolled, pinned] = [0, NaN];
      // A button or a key chose what is shown. Of several sentences on a line a key chose one, and it stays chosen until
      // somebody scrolls by hand or far; a machine that becomes higher or lower moves the page by a line of its text.
      const held = () => performance.now() <= chosen || Math.abs(scrollY - pinned) < 60;
      for (const event of ["wheel", "touchmove"])
        on(document, event, () => { pinned = NaN; }, { passive: true });
      on(window, "scroll", () => {
        scrolled ||= requestAnimationFrame(() => {
          scrolled = 0;
          if (held()) return;
          const stop = told.findIndex((section) => section.getBoundingClientRect().bottom > mark());
          if (stop >= 0 && told[stop].getBoundingClientRect().top <= mark()) show(stop, reading(stop));
        });
      }, { passive: true });
      // → and ← go a sentence on and back
      on(document, "keydown", (event) => {
        const way = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
        if (
          !way ||
          event.defaultPrevented ||
          event.altKey ||
          event.ctrlKey ||
          event.metaKey ||
          event.target.closest?.("input, select, textarea, .machine-stays, [role=group]")
        )
          return;
        const all = films.flatMap((steps, stop) =>
          (steps.length ? steps : [null]).map((step, k) => ({ stop, k, step })),
        );
        const next = all[all.findIndex(({ stop, k }) => `${stop}.${k}` === played) + way];
        if (!next) return;
        event.preventDefault();
        chosen = performance.now() + 800;
        // before anything is measured, because the machine's height may change, and the text then moves
        show(next.stop, next.k);
        const area = told[next.stop].getBoundingClientRect();
        const y = beside()
          ? area.top + ((next.k + 0.5) / Math.max(1, films[next.stop].length)) * area.height
          : (next.step?.node ?? told[next.stop]).getBoundingClientRect().top + 4;
        const most = document.documentElement.scrollHeight - innerHeight;
        pinned = clamp(scrollY + y - mark(), 0, most);
        scrollTo({ top: pinned, behavior: "smooth" });
      });
      // the stop whose text crosses a line of the screen is the one that is shown; a screen that is turned has another line
      let [seen, later] = [null, 0];
      const watch = () => {
        seen?.disconnect();
        clearTimeout(later);
        later = 0;
        const at = Math.round(Math.min(under() + 0.3 * Math.max(0, innerHeight - under()), innerHeight - 24));
        seen = new IntersectionObserver(
          (entries) =>
            entries.forEach((entry) => {
              if (entry.isIntersecting && !held())
                show(told.indexOf(entry.target), reading(told.indexOf(entry.target)));
          else if (entry.isIntersecting && performance.now() <= chosen) later ||= setTimeout(watch, chosen - performance.now() + 50); // who scrolls on meanwhile
        }), { rootMargin: beside() ? "-45% 0px -50%" : `-${at}px 0px -${Math.max(0, innerHeight - at - 8)}px` });
        told.forEach((section) => seen.observe(section));
      };
      requestAnimationFrame(watch);
      on(window, "resize", watch);
      // what moves the machine is folded until one needs it
      const panel = figure.querySelector(".drawing-controls");
      panel
        .querySelector(".drawing-steps")
        .insertAdjacentHTML(
          "afterend",
          `<span class="machine-keys">${said("← → a sentence back or on")}</span><button type="button" class="drawing-fold" aria-expanded="false">${said("controls")}</button>`,
        );
      const fold = panel.querySelector(".drawing-fold");
      on(fold, "click", () => fold.setAttribute("aria-expanded", String(panel.classList.toggle("unfolded"))));
      // from its last control Tab goes to the text of the stop that is shown, and back; the texts above it would scroll the page
      const reached = (node) =>
        [...node.querySelectorAll("a[href], button, input, select, [tabindex='0']")].filter(
          (each) => each.checkVisibility?.() !== false && !each.disabled,
        );
      on(stays, "keydown", (event) => {
        const target = reached(told[Math.round(hand.state.at)])[0];
        if (event.key !== "Tab" || event.shiftKey || event.target !== reached(stays).at(-1) || !target) return;
        event.preventDefault();
        target.focus({ preventScroll: beside() });
      });
      on(told[0].parentNode, "keydown", (event) => {
        if (
          event.key !== "Tab" ||
          !event.shiftKey ||
          event.target !== reached(told[Math.round(hand.state.at)])[0]
        )
          return;
        event.preventDefault();
        reached(stays).at(-1).focus({ preventScroll: true });
      });
      told.forEach((section, stop) => {
        const more = [note(stop), hangs(stop) && `<a href="${hangs(stop)}">${said(into(stop))}</a>`]
          .filter(Boolean)
          .join(" · ");
        if (more)
          (section.querySelector(".stop-text") ?? section).insertAdjacentHTML(
            "beforeend",
            `<p class="machine-more">${more}</p>`,
          );
      });
      fit();
      on(figure, "step", (event) => {
        event.preventDefault();
        history.replaceState(null, "", `#stop-${event.detail}`);
        chosen = performance.now() + 1500;
        beside() ? show(event.detail) : hand.set({ at: event.detail });
        // once its sentence is there, whose lines say where the text begins
        const behavior = calm() ? "auto" : "smooth";
        requestAnimationFrame(() => requestAnimationFrame(() => go(event.detail, behavior)));
      });
      if (linked()) {
        const stop = Number(linked()[1]);
        chosen = performance.now() + 1500;
        hand.set({ at: stop });
        requestAnimationFrame(() => requestAnimationFrame(() => go(stop, "auto")));
      }
      const guessed = /** @type {HTMLInputElement | null} */ (document.querySelector(".guess input"));
      on(guessed ?? figure, "change", () => fall(hand, stays, guessed));
      // what the machine shows, and the guess, go into an address that can be sent
      fold.insertAdjacentHTML("beforebegin", `<button type="button" class="machine-share">${said(SHARE)}</button>`);
      const share = panel.querySelector(".machine-share");
      // once there is something to share: a guess, or a state that a hand has set
      share.hidden = !guessed?.value;
      const offer = () => {
        share.hidden = false;
      };
      if (guessed) on(guessed, "change", offer);
      for (const kind of ["input", "change"]) on(panel, kind, offer);
      on(panel, "change", () => run(100));
      for (const kind of ["pointerup", "keyup"]) on(figure.querySelector(".drawing-stage"), kind, offer);
      on(share, "click", async () => {
        const guess = guessed?.value ? `&guess=${Math.round(Number(guessed.value))}` : "";
        history.replaceState(null, "", `${toLink("machine", hand.state)}${guess}`);
        try {
          await navigator.clipboard.writeText(location.href);
          share.textContent = said(COPIED);
        } catch {
          share.textContent = said(ABOVE); // where the browser allows no copy
        }
        setTimeout(() => { share.textContent = said(SHARE); }, 4000);
      });
      // who opens that address finds the stop in sight and its state, which stays until the text scrolls on
      const sent = fromLink("machine", hand.state, location.hash);
      if (sent) {
        const stop = clamp(Math.round(Number(sent.at)), 0, told.length - 1);
        const guess = Number(new URLSearchParams(location.hash.slice(1)).get("guess"));
        if (guess > 0 && guess < 1000)
          guessed
            ?.closest("p")
            .insertAdjacentHTML("afterend", `<p>${said(`Whoever sent you this guessed ${Math.round(guess)}.`)}</p>`);
        chosen = performance.now() + 1500;
        requestAnimationFrame(() => requestAnimationFrame(() => {
          go(stop, "auto");
          played = `${stop}.${reading(stop)}`;
          hand.set(sent);
        }));
      }
      hand.set({}); // the row says no number before the field below it is filled
    } else if (linked()) hand.set({ at: Number(linked()[1]) });
    // on a slide the clicker shows one scene after the other, and takes them back
    const scenes = [...(figure.closest(".reveal section")?.querySelectorAll("[data-scene]") ?? [])];
    const opening = { ...hand.state };
    for (const kind of scenes.length ? ["fragmentshown", "fragmenthidden"] : [])
      on(document, kind, (event) => {
        if (!scenes.includes(event.fragment)) return;
        const last = scenes.findLast((each) => each.classList.contains("visible"));
        hand.glide({ ...opening, ...(last ? JSON.parse(last.dataset.scene) : {}) }, 700);
        run(700);
      });
    const link = figure.querySelector(".machine-into");
    on(figure, "painted", () => {
      const stop = Math.round(hand.state.at);
      figure.toggleAttribute("data-begins", hand.state.at < 0.02);
      if (!link || link.dataset.stop === String(stop)) return;
      link.dataset.stop = stop;
      figure.querySelector(".machine-measured").innerHTML = note(stop);
      link.hidden = !hangs(stop);
      [link.href, link.textContent] = [hangs(stop), said(into(stop))];
    });
    figure.dispatchEvent(new CustomEvent("painted"));
  },
});
export default { render };

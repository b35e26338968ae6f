// What a reader can change, as plain numbers: from settings to the inputs of the graph, and the course's measures of what
// comes out. Nothing here knows a page or a model; tests/test_try.py holds it against Python.

export const MOST = 256; // tokens that the page reads
export const LONGEST = 4000; // characters of a prompt; of most texts the tokens run out long before
export const MARK = 0.3; // a score above it gets a mark, in all chapters
export const OFFSETS = 16; // places back that a slash is looked for

/** The settings as trained. Tokens, layers, heads and pairs count from 1; lists are texts such as "1, 5-8". */
export const TRAINED = {
  base: "", quarters: "tttt", silent: "", stretch: 1, gap: 0, after: 1, window: 0, first: false, hide: "",
  off: "", alone: "", temperature: 1, separator: ",", every: 0,
};
/** What else a link holds: what is looked at. */
export const VIEW = { prompt: "", second: "", view: "next", token: 0, layer: 1, head: 1, right: "0", wrong: "1" };

const fail = (field, sentence) => { throw Object.assign(new Error(sentence), { field }); };

/**
 * @typedef {{ layers: number, heads: number, groups: number, size: number, width: number, vocabulary: number, base: number }} Shape of a model
 * @typedef {typeof TRAINED & typeof VIEW} State of the page, each value as a field or a link gives it
 * @typedef {ReturnType<typeof checked>} Use the settings as they are used
 * @typedef {ArrayLike<number> & Iterable<number>} Numbers
 * @typedef {{ sink: number, diagonal: number, previous: number, slash: number, offset: number }} Score of a head
 */

/**
 * "1, 5-8" as a set of numbers from 1 to `most`.
 * @param {string} field
 * @param {string} text
 * @param {number} most
 * @param {string} what
 */
export function listed(field, text, most, what) {
  const found = new Set();
  for (const part of String(text)
    .split(",")
    .map((each) => each.trim())
    .filter(Boolean)) {
    const [, low, high] =
      part.match(/^(\d+)(?:\s*[-–]\s*(\d+))?$/) ??
      fail(field, `${what} must be numbers such as “1, 5-8”, not “${part.slice(0, 20)}”.`);
    const from = Number(low),
      to = Number(high ?? low);
    if (from < 1 || to > most || from > to)
      fail(field, `${what} go from 1 to ${most}, but you typed “${part.slice(0, 20)}”.`);
    for (let k = from; k <= to; k += 1) found.add(k);
  }
  return found;
}

/**
 * "4.5, 20.*" as a set of "layer.head".
 * @param {string} field
 * @param {string} text
 * @param {Shape} shape
 */
export function heads(field, text, shape) {
  const found = new Set();
  for (const part of String(text)
    .split(",")
    .map((each) => each.trim())
    .filter(Boolean)) {
    const [, l, h] =
      part.match(/^(\d+|\*)\.(\d+|\*)$/) ??
      fail(
        field,
        `Write a head as layer.head, for example 4.5, or 4.* for all heads of a layer, not “${part.slice(0, 20)}”.`,
      );
    const spread = (name, most) =>
      name === "*" ? Array.from({ length: most }, (_, k) => k + 1) : [Number(name)];
    for (const layer of spread(l, shape.layers))
      for (const head of spread(h, shape.heads)) {
      if (layer < 1 || layer > shape.layers || head < 1 || head > shape.heads)
          fail(
            field,
            `Layers go from 1 to ${shape.layers} and heads from 1 to ${shape.heads}, so there is no head ${part}.`,
          );
      found.add(`${layer}.${head}`);
    }
  }
  return found;
}

function number(field, value, low, high, what) {
  const found = String(value).trim() === "" ? NaN : Number(value);
  if (!(found >= low && found <= high))
    fail(field, `${what} must be a number from ${low} to ${high}, not “${String(value).slice(0, 20)}”.`);
  return found;
}

function whole(field, value, low, high, what) {
  const found = number(field, value, low, high, what);
  if (!Number.isInteger(found)) fail(field, `${what} must be an integer, not ${found}.`);
  return found;
}

/**
 * Settings as they are used, or an Error with a sentence and the name of the field. `n` is the number of tokens.
 * @param {Record<string, any>} settings
 * @param {Shape} shape
 * @param {number} [n]
 */
export function checked(settings, shape, n = MOST) {
  const s = { ...TRAINED, ...settings }, pairs = shape.size / 2;
  return {
    base: String(s.base).trim() === "" ? shape.base : number("base", s.base, 1.001, 1e12, "The base"),
    quarters: /^[tso]{4}$/.test(s.quarters)
      ? s.quarters
      : fail("quarters", "Each quarter of the pairs must rotate, stand still, or be off."),
    silent: listed("silent", s.silent, pairs, "Pairs"),
    stretch: number("stretch", s.stretch, 0, 1000, "The stretch"),
    gap: whole("gap", s.gap, 0, 1e6, "The number of positions left out"),
    after: whole("after", s.after, 1, 1e6, "The token before the gap"),
    window: whole("window", s.window, 0, 1e6, "The window (0 is none)"),
    hide: new Set([...(s.first ? [1] : []), ...listed("hide", s.hide, n, "Tokens of this prompt")]),
    off: heads("off", s.off, shape),
    alone: heads("alone", s.alone, shape),
    temperature: number("temperature", s.temperature, 0.01, 100, "The temperature"),
    separator: String(s.separator).slice(0, 20),
    every: whole("every", s.every, 0, 1e6, "How often a separator comes (0 is never)"),
  };
}

/**
 * The same with tokens named by where they stand in the sequence: the prompt's token k stands at places[k - 1], from 0.
 * @type {(use: Use, places: number[]) => Use}
 */
export const placed = (use, places) => ({ ...use, hide: new Set([...use.hide].map((k) => places[k - 1] + 1)),
  after: use.after <= places.length ? places[use.after - 1] + 1 : use.after + places.at(-1) + 1 - places.length });

/** Whether these settings are the model as trained. @type {(settings: Record<string, any>) => boolean} */
export const untouched = (settings) =>
  Object.keys(TRAINED).every(
    (k) => k === "separator" || k === "after" || String(settings[k]) === String(TRAINED[k]),
  );

/** What is changed, each in a few words; nothing where all is as trained. */
export function changes(settings) {
  const is = (name) => String(settings[name]) !== String(TRAINED[name]);
  const quarter = ["fastest", "second", "third", "slowest"], does = { s: "stands still", o: "is off" };
  return [
    is("base") && `RoPE's base is ${settings.base}`,
    ...[...String(settings.quarters)].map((k, at) => does[k] && `the ${quarter[at]} quarter of the pairs ${does[k]}`),
    is("silent") && `pairs ${settings.silent} are off`,
    is("stretch") && `positions are multiplied by ${settings.stretch}`,
    is("gap") && `${settings.gap} positions are left out after token ${settings.after}`,
    is("window") && `each token sees a window of ${settings.window}`,
    is("first") && "the first token is hidden",
    is("hide") && `tokens ${settings.hide} are hidden`,
    is("every") && `“${settings.separator}” is put in after every ${settings.every} tokens`,
    is("off") && `heads ${settings.off} are off`,
    is("alone") && `only heads ${settings.alone} are on`,
    is("temperature") && `the temperature of all heads is ${settings.temperature}`,
  ].filter(Boolean);
}

/** Where tokens p to p + n - 1 stand. @type {(use: Use, p: number, n: number) => number[]} */
export const positions = (use, p, n) =>
  Array.from({ length: n }, (_, k) => (p + k) * use.stretch + (p + k >= use.after ? use.gap : 0));

/**
 * Rotary tables (n, size), the halves of a pair size/2 apart; temperature is in them, half in queries, half in keys.
 * @param {Use} use
 * @param {Shape} shape
 * @param {number} p
 * @param {number} n
 */
export function tables(use, shape, p, n) {
  const half = shape.size / 2, quarter = half / 4, scale = use.temperature ** -0.5;
  const cos = new Float32Array(n * shape.size), sin = new Float32Array(n * shape.size);
  positions(use, p, n).forEach((place, row) => {
    for (let k = 0; k < half; k += 1) {
      const kind = use.silent.has(k + 1) ? "o" : use.quarters[Math.floor(k / quarter)];
      const angle = kind === "t" ? place * use.base ** (-k / half) : 0;
      const strength = kind === "o" ? 0 : scale;
      for (const at of [k, k + half]) {
        cos[row * shape.size + at] = strength * Math.cos(angle);
        sin[row * shape.size + at] = strength * Math.sin(angle);
      }
    }
  });
  return { cos, sin };
}

/**
 * What is added to the logits (n, p + n): 0 where a token looks, minus infinity where it must not.
 * @param {Use} use
 * @param {number} p
 * @param {number} n
 */
export function bias(use, p, n) {
  const t = p + n, out = new Float32Array(n * t);
  for (let row = 0; row < n; row += 1) for (let j = 0; j < t; j += 1) {
    const i = p + row;
    const seen = j === i || (j < i && !(use.window && i - j >= use.window) && !use.hide.has(j + 1));
    out[row * t + j] = seen ? 0 : -Infinity;
  }
  return out;
}

/**
 * What each head's output is multiplied by, (layers, heads).
 * @param {Use} use
 * @param {Shape} shape
 */
export function gain(use, shape) {
  const out = new Float32Array(shape.layers * shape.heads);
  for (let l = 0; l < shape.layers; l += 1) for (let h = 0; h < shape.heads; h += 1) {
    const name = `${l + 1}.${h + 1}`;
    out[l * shape.heads + h] = (use.alone.size && !use.alone.has(name)) || use.off.has(name) ? 0 : 1;
  }
  return out;
}

/** The tokens with a separator's tokens after every k of them; none after the last. */
export function separated(ids, between, every) {
  if (!every) return ids;
  return ids.flatMap((id, k) => ((k + 1) % every || k + 1 === ids.length ? [id] : [id, ...between]));
}

// Measures ------------------------------------------------------------------------------------------------

/** @param {Numbers} logits */
export function softmax(logits) {
  let top = -Infinity, total = 0;
  for (const x of logits) if (x > top) top = x;
  const out = Float64Array.from(logits, (x) => Math.exp(x - top));
  for (const x of out) total += x;
  return out.map((x) => x / total);
}

/**
 * Kullback-Leibler divergence of the next-token distributions, in nats: as trained against changed.
 * @param {Numbers} logits
 * @param {Numbers} changed
 */
export function divergence(logits, changed) {
  let a = -Infinity, b = -Infinity, za = 0, zb = 0, sum = 0;
  for (let k = 0; k < logits.length; k += 1) { if (logits[k] > a) a = logits[k]; if (changed[k] > b) b = changed[k]; }
  for (let k = 0; k < logits.length; k += 1) { za += Math.exp(logits[k] - a); zb += Math.exp(changed[k] - b); }
  const la = a + Math.log(za), lb = b + Math.log(zb);
  for (let k = 0; k < logits.length; k += 1) {
    const p = logits[k] - la;
    sum += Math.exp(p) * (p - (changed[k] - lb));
  }
  return Math.max(0, sum);
}

/**
 * @param {Numbers} probabilities
 * @param {number} count
 */
export function likeliest(probabilities, count) {
  const best = [];
  for (let k = 0; k < probabilities.length; k += 1) {
    if (best.length === count && probabilities[k] <= probabilities[best[count - 1]]) continue;
    let at = best.length;
    while (at > 0 && probabilities[best[at - 1]] < probabilities[k]) at -= 1;
    best.splice(at, 0, k);
    if (best.length > count) best.pop();
  }
  return best;
}

/**
 * Mean attention that the first token receives (Gu et al., 2025): `attention.sink_score`.
 * @param {Numbers} map
 * @param {number} n
 */
export function sink(map, n) {
  let sum = 0;
  for (let i = 0; i < n; i += 1) sum += map[i * n];
  return sum / n;
}

/**
 * Mean attention to the token `offset` places back: `attention.slash_score`.
 * @param {Numbers} map
 * @param {number} n
 * @param {number} offset
 */
export function slash(map, n, offset) {
  let sum = 0;
  for (let i = offset; i < n; i += 1) sum += map[i * n + i - offset];
  return sum / (n - offset);
}

/**
 * Scores of every head of attentions (layers * heads, n, n): sink, diagonal, previous, and the best slash further back.
 * @param {Float32Array} attentions
 * @param {number} count
 * @param {number} n
 */
export function scores(attentions, count, n) {
  return Array.from({ length: count }, (_, k) => {
    const map = attentions.subarray(k * n * n, (k + 1) * n * n);
    // of the last quarter of the offsets too few tokens are left for a mean
    const furthest = Math.min(OFFSETS, Math.floor((3 * n) / 4));
    let best = 0, offset = 0;
    for (let o = 2; o < furthest; o += 1) {
      const score = slash(map, n, o);
      if (score > best) [best, offset] = [score, o];
    }
    return {
      sink: sink(map, n),
      diagonal: slash(map, n, 0),
      previous: n > 1 ? slash(map, n, 1) : 0,
      slash: best,
      offset,
    };
  });
}

export const KINDS = ["sink", "diagonal", "previous", "slash"];
/**
 * The mark of a head: the strongest of its scores above `MARK`, or none.
 * @param {Score} score
 */
export function mark(score) {
  const best = KINDS.reduce((a, b) => (score[b] > score[a] ? b : a));
  return score[best] > MARK ? best : "";
}

/**
 * @param {Numbers} a
 * @param {Numbers} b
 */
export function distance(a, b) {
  let sum = 0;
  for (let k = 0; k < a.length; k += 1) sum += Math.abs(a[k] - b[k]);
  return sum;
}

export const size = (a) => a.reduce((sum, x) => sum + Math.abs(x), 0);

// Links ---------------------------------------------------------------------------------------------------

/**
 * `#prompt=…&window=8`: what differs from the model as trained and from the view at the start.
 * @param {Record<string, any>} state
 */
export function toLink(state) {
  const found = new URLSearchParams();
  for (const [name, usual] of Object.entries({ ...VIEW, ...TRAINED }))
    if (name === "prompt" || String(state[name]) !== String(usual)) found.set(name, String(state[name]));
  return `#${found}`;
}

/**
 * The state in a link; what is not understood there is left as it was.
 * @param {string} hash
 */
export function fromLink(hash) {
  const usual = { ...VIEW, ...TRAINED }, state = { ...usual };
  for (const [name, value] of new URLSearchParams(String(hash).replace(/^#/, ""))) {
    if (!Object.hasOwn(usual, name)) continue;
    const kind = typeof usual[name];
    if (kind === "boolean") state[name] = value === "true";
    else if (kind === "number")
      state[name] = value.trim() && Number.isFinite(Number(value)) ? Number(value) : usual[name];
    else state[name] = value.slice(0, LONGEST);
  }
  return state;
}

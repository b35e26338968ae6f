// The course's own small decoders, token by token in plain JavaScript: their 40,000 to 100,000 weights need no runtime.
// Held against PyTorch by tests/test_try.py.

/** What `course_decoder` of src/book/export.py wrote, with its weights as arrays. */
export function unpacked(written) {
  const weights = {};
  for (const [name, { shape, data }] of Object.entries(written.weights)) {
    const bytes = Uint8Array.from(atob(data), (c) => c.charCodeAt(0));
    weights[name] = Object.assign(new Float32Array(bytes.buffer), { shape });
  }
  return { ...written, weights };
}

function linear(weight, x, bias) {
  const [rows, columns] = weight.shape, out = new Float64Array(rows);
  for (let i = 0, at = 0; i < rows; i += 1) {
    let sum = bias ? bias[i] : 0;
    for (let j = 0; j < columns; j += 1, at += 1) sum += weight[at] * x[j];
    out[i] = sum;
  }
  return out;
}

function norm(model, name, x) {
  const weight = model.weights[`${name}.weight`];
  if (!weight) return x;
  const bias = model.weights[`${name}.bias`], n = x.length;
  let mean = 0, square = 0;
  for (const value of x) mean += value / n;
  for (const value of x) square += (value - mean) ** 2 / n;
  const scale = 1 / Math.sqrt(square + 1e-5);
  return x.map((value, k) => (value - mean) * scale * weight[k] + bias[k]);
}

/** x times the normal distribution function, by the error function's expansion in Chebyshev polynomials (1e-7). */
function gelu(x) {
  const z = Math.abs(x) / Math.SQRT2,
    t = 1 / (1 + 0.5 * z);
  const series = [
    -1.26551223, 1.00002368, 0.37409196, 0.09678418, -0.18628806, 0.27886807, -1.13520398, 1.48851587,
    -0.82215223, 0.17087277,
  ];
  const tail = t * Math.exp(-z * z + series.reduceRight((sum, c) => c + t * sum, 0));
  return (x * (x >= 0 ? 2 - tail : tail)) / 2;
}

function turned(part, place, frequencies) {
  const half = part.length / 2, out = new Float64Array(part.length);
  for (let k = 0; k < half; k += 1) {
    const c = Math.cos(place * frequencies[k]), s = Math.sin(place * frequencies[k]);
    out[k] = part[k] * c - part[k + half] * s;
    out[k + half] = part[k] * s + part[k + half] * c;
  }
  return out;
}

/** Nothing read yet. */
export const start = (model) => Array.from({ length: model.layers }, () => ({ keys: [], values: [] }));

/** Read one token after those in `past`; `keep` adds it to them. Gives the final state and the next token's logits. */
export function step(model, past, token, keep = true) {
  const { heads, layers, width, frequencies, slopes, window } = model,
    size = width / heads,
    place = past[0].keys.length;
  let x = Float64Array.from(model.weights["embedding.weight"].subarray(token * width, (token + 1) * width));
  for (let layer = 0; layer < layers; layer += 1) {
    const name = (part) => `blocks.${layer}.${part}`, w = (part) => model.weights[name(part)];
    const qkv = linear(w("qkv.weight"), norm(model, name("norm1"), x));
    const part = (k, h) => qkv.slice(k * width + h * size, k * width + (h + 1) * size);
    const turn = (each) => (frequencies ? turned(each, place, frequencies) : each);
    const own = { key: [], value: [] }, mixed = new Float64Array(width);
    for (let h = 0; h < heads; h += 1) {
      own.key.push(turn(part(1, h)));
      own.value.push(part(2, h));
    }
    const keys = [...past[layer].keys, own.key], values = [...past[layer].values, own.value];
    const from = window ? Math.max(0, place - window + 1) : 0;
    for (let h = 0; h < heads; h += 1) {
      const query = turn(part(0, h)), scores = [];
      let top = -Infinity, total = 0;
      for (let j = from; j <= place; j += 1) {
        let score = 0;
        for (let k = 0; k < size; k += 1) score += query[k] * keys[j][h][k];
        score = score / Math.sqrt(size) - (slopes ? slopes[h] * (place - j) : 0);
        scores.push(score);
        if (score > top) top = score;
      }
      const weights = scores.map((score) => Math.exp(score - top));
      for (const weight of weights) total += weight;
      for (let j = from; j <= place; j += 1)
        for (let k = 0; k < size; k += 1)
          mixed[h * size + k] += (weights[j - from] / total) * values[j][h][k];
    }
    const out = linear(w("out.weight"), mixed);
    x = x.map((value, k) => value + out[k]);
    const inner = linear(w("mlp.0.weight"), norm(model, name("norm2"), x), w("mlp.0.bias")).map(gelu);
    const back = linear(w("mlp.2.weight"), inner, w("mlp.2.bias"));
    x = x.map((value, k) => value + back[k]);
    if (keep) [past[layer].keys, past[layer].values] = [keys, values];
  }
  const state = norm(model, "norm", x);
  return { state, logits: linear(model.weights["head.weight"], state) };
}

/** What the decoder answers after each prefix of `letters`, `ask` being the token that asks, or null: the last letter is asked; n = 1, 2, … */
export function prefixes(model, letters, ask) {
  const past = start(model), number = (text) => model.vocabulary.indexOf(text), found = [];
  step(model, past, number("<s>"));
  for (const letter of letters) {
    const here = step(model, past, number(letter));
    found.push(ask === null ? here : step(model, past, number(ask), false));
  }
  return found;
}

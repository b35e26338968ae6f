// The mathematics that moves. Each function is the Python function of the same name; tests/test_drawing.py holds them equal.

/** rope.frequencies: the angle of each pair a token, fastest first. @type {(width: number, base: number) => number[]} */
export const frequencies = (width, base) => Array.from({ length: width / 2 }, (_, k) => base ** ((-2 * k) / width));

/**
 * rope.cosine_sum: the logit, at a distance, of two equal vectors with a unit vector in each pair. The sum is over all
 * pairs or over some of them.
 * @type {(distance: number, width: number, base: number, first?: number, end?: number) => number}
 */
export const cosineSum = (distance, width, base, first = 0, end = width / 2) =>
  frequencies(width, base).slice(first, end).reduce((sum, theta) => sum + Math.cos(distance * theta), 0);

/**
 * attention.influence of constructions.sink: the last row, which has the influence of each of n tokens on the last token.
 * If the sink has no weight, this is uniform attention.
 * @type {(n: number, layers: number, residual?: number, weight?: number) => number[]}
 */
export const uniformInfluence = (n, layers, residual = 0, weight = 0) => {
  let row = Array.from({ length: n }, (_, j) => (j === n - 1 ? 1 : 0));
  for (let layer = 0; layer < layers; layer += 1) {
    let later = 0;
    const next = Array(n);
    for (let j = n - 1; j >= 0; j -= 1) {
      later += row[j] / (j + 1);
      next[j] = residual * row[j] + (1 - residual) * (1 - weight) * later;
    }
    next[0] += (1 - residual) * weight;
    row = next;
  }
  return row;
};

/**
 * Apply one layer of constructions.sink to one number per token. Each token keeps the fraction `residual` of its own
 * number and takes the rest from all tokens up to itself.
 * @type {(states: number[], residual?: number, weight?: number) => number[]}
 */
export const spread = (states, residual = 0, weight = 0) => {
  let sum = 0;
  return states.map(
    (own, j) =>
      residual * own + (1 - residual) * ((1 - weight) * ((sum += own) / (j + 1)) + weight * states[0]),
  );
};

/**
 * Apply one layer of attention.uniform to one number per token. `sources[j]` lists the tokens that token j sees.
 * @type {(states: number[], sources: number[][]) => number[]}
 */
export const averaged = (states, sources) =>
  sources.map((list) => list.reduce((sum, i) => sum + states[i], 0) / list.length);

/** Softmax, as torch has it. @type {(logits: number[]) => number[]} */
export const softmax = (logits) => {
  const most = logits.reduce((a, b) => Math.max(a, b), -Infinity);
  const grown = logits.map((x) => Math.exp(x - most));
  const sum = grown.reduce((a, b) => a + b, 0);
  return grown.map((x) => x / sum);
};

/** weightings.softmax_off_by_one. @type {(logits: number[]) => number[]} */
export const softmaxOffByOne = (logits) => softmax([...logits, 0]).slice(0, -1);

/** weightings.scalable_softmax. @type {(logits: number[], factor?: number) => number[]} */
export const scalableSoftmax = (logits, factor = 1) => softmax(logits.map((x) => factor * Math.log(logits.length) * x));

/** weightings.top_k. @type {(logits: number[], k?: number) => number[]} */
export const topK = (logits, k = 8) => {
  const least = [...logits].sort((a, b) => b - a)[Math.min(k, logits.length) - 1];
  return softmax(logits.map((x) => (x < least ? -Infinity : x)));
};

/** weightings.entmax15. @type {(logits: number[]) => number[]} */
export const entmax15 = (logits) => {
  const most = logits.reduce((a, b) => Math.max(a, b), -Infinity);
  const x = logits.map((logit) => (logit - most) / 2);
  let [sum, squares, tau] = [0, 0, 0];
  [...x].sort((a, b) => b - a).every((one, k) => {
    [sum, squares] = [sum + one, squares + one * one];
    const mean = sum / (k + 1);
    const next = mean - Math.sqrt(Math.max(0, (1 - (squares - (k + 1) * mean * mean)) / (k + 1)));
    if (next > one) return false;
    tau = next;
    return true;
  });
  return x.map((one) => Math.max(0, one - tau) ** 2);
};

/** weightings.adaptive_entmax, with delta 1 and gamma 1. @type {(logits: number[], beta?: number) => number[]} */
export const adaptiveEntmax = (logits, beta = 1) =>
  entmax15(logits.map((x) => (1 + beta * Math.log(logits.length)) * x));

/** weightings.stick_breaking, the row of the last token, from the nearest key on. @type {(logits: number[]) => number[]} */
export const stickBreaking = (logits) => {
  let stick = 1;
  return logits.map((_, k) => {
    const j = logits.length - 2 - k;
    if (j < 0) return 0;
    const taken = stick / (1 + Math.exp(-logits[j]));
    stick -= taken;
    return taken;
  }).slice(0, -1).reverse().concat(0);
};

/** Significant bits of a floating-point format, the leading one included. */
export const BITS = { fp32: 24, fp16: 11, bf16: 8 };
/**
 * collapse.round_to, for numbers that are neither very large nor very small: round to the nearest value, ties to even.
 * @type {(x: number, type: string) => number}
 */
export const roundTo = (x, type) => {
  if (x === 0) return 0;
  const step = 2 ** (Math.floor(Math.log2(Math.abs(x))) - BITS[type] + 1);
  const [steps, low] = [x / step, Math.floor(x / step)];
  const up = steps - low > 0.5 || (steps - low === 0.5 && low % 2 !== 0);
  return (low + Number(up)) * step;
};

/**
 * constructions.sink of attention.uniform: the first token gets the fraction `weight` of each row, and the rest is divided
 * equally among the tokens that the mask allows.
 * @type {(mask: number[][], weight: number) => number[][]}
 */
export const sink = (mask, weight) =>
  mask.map((row) => {
    const allowed = row.reduce((sum, on) => sum + on, 0);
    return row.map((on, j) => ((1 - weight) * on) / allowed + (j === 0 ? weight : 0));
  });

/**
 * attention.influence after each number of layers from 0 on: the product of the matrices (1 - residual) A + residual I.
 * @type {(matrix: number[][], layers: number, residual: number) => number[][][]}
 */
export const influence = (matrix, layers, residual) => {
  const n = matrix.length;
  const found = [Array.from({ length: n }, (_, i) => Array.from({ length: n }, (_, j) => Number(i === j)))];
  for (let layer = 0; layer < layers; layer += 1) {
    const before = found[layer];
    found.push(
      matrix.map((row, i) =>
        before[i].map(
          (own, j) =>
            residual * own + (1 - residual) * row.reduce((sum, weight, k) => sum + weight * before[k][j], 0),
        ),
      ),
    );
  }
  return found;
};

/** chapter2.measures.heard: as if how many tokens were heard equally, the exponential of the row's entropy. @type {(row: number[]) => number} */
export const heard = (row) => Math.exp(-row.reduce((sum, share) => sum + (share > 0 ? share * Math.log(share) : 0), 0));

/**
 * counting.mass_on_ones: the weight of all ones together if the logit of a one is larger by `lead` than that of a zero.
 * @type {(zeros: number, ones: number, lead: number) => number}
 */
export const massOnOnes = (zeros, ones, lead) => (ones === 0 ? 0 : 1 / (1 + (zeros / ones) * Math.exp(-lead)));

/**
 * The numbers that a type represents from `low` to `high` (both above 0), in increasing order and at most `most` of them.
 * @type {(low: number, high: number, type: string, most: number) => number[]}
 */
export const floats = (low, high, type, most) => {
  const found = [];
  for (
    let x = roundTo(low, type);
    x <= high && found.length < most;
    x += 2 ** (Math.floor(Math.log2(x)) - BITS[type] + 1)
  )
    if (x >= low) found.push(x);
  return found;
};

/**
 * chapter6.measures.noise_left: the norm of a - lam b divided by the norm of a, where b is `ratio` times as long as a and
 * c is their cosine.
 * @type {(c: number, lam: number, ratio?: number) => number}
 */
export const noiseLeft = (c, lam, ratio = 1) => Math.sqrt(Math.max(0, 1 + (lam * ratio) ** 2 - 2 * lam * ratio * c));

/** graphs.adjacency with loops, "row": each node's own state and its neighbours', in equal parts. @type {(adjacency: number[][]) => number[][]} */
export const averaging = (adjacency) =>
  adjacency.map((row, i) => {
    const degree = 1 + row.reduce((sum, x) => sum + x, 0);
    return row.map((x, j) => (x + Number(i === j)) / degree);
  });

const inverse = (matrix) => {
  const n = matrix.length;
  const rows = matrix.map((row, i) => [...row, ...row.map((_, j) => Number(i === j))]);
  for (let k = 0; k < n; k += 1) {
    const best = rows.reduce((at, row, i) => (i >= k && Math.abs(row[k]) > Math.abs(rows[at][k]) ? i : at), k);
    [rows[k], rows[best]] = [rows[best], rows[k]];
    const pivot = rows[k][k];
    rows[k] = rows[k].map((x) => x / pivot);
    rows.forEach((row, i) => {
      if (i === k || row[k] === 0) return;
      const factor = row[k];
      for (let j = k; j < 2 * n; j += 1) row[j] -= factor * rows[k][j];
    });
  }
  return rows.map((row) => row.slice(n));
};

/**
 * The pseudoinverse of the Laplacian of a connected graph. Entry (u, s) minus entry (u, t) is the potential of u while a
 * current of one ampere flows from s to t.
 * @type {(adjacency: number[][]) => number[][]}
 */
export const potentials = (adjacency) => {
  const n = adjacency.length;
  const raised = adjacency.map((row, i) =>
    row.map((x, j) => (i === j ? row.reduce((sum, y) => sum + y, 0) : -x) + 1 / n),
  );
  return inverse(raised).map((row) => row.map((x) => x - 1 / n));
};

/**
 * widening.effective_resistance: the resistance in ohms between every two nodes of a connected graph if every edge has
 * one ohm.
 * @type {(adjacency: number[][]) => number[][]}
 */
export const effectiveResistance = (adjacency) => {
  const p = potentials(adjacency);
  return p.map((row, i) => row.map((x, j) => (i === j ? 0 : p[i][i] + p[j][j] - 2 * x)));
};

/**
 * widening.rewire with "gtr" and one edge: the pair of nodes without an edge whose new edge lowers the total resistance
 * most, or null if all pairs have an edge.
 * @type {(adjacency: number[][]) => number[] | null}
 */
export const openingEdge = (adjacency) => {
  const p = potentials(adjacency);
  const n = p.length;
  let [best, found] = [0, null];
  for (let u = 0; u < n; u += 1) {
    for (let v = u + 1; v < n; v += 1) {
      if (adjacency[u][v]) continue;
      const squared = p.reduce((sum, row) => sum + (row[u] - row[v]) ** 2, 0);
      const gain = squared / (1 + p[u][u] + p[v][v] - 2 * p[u][v]);
      if (gain > best * (1 + 1e-9)) [best, found] = [gain, [u, v]];
    }
  }
  return found;
};

// The race's decoder in plain typed arrays, forwards and backwards: one arena, nothing allocated in a step, no library.
// Held against PyTorch by tests/test_train.py: loss, gradients and steps of AdamW, in Float64Array to 1e-10.

const WIDTH = 32, MAPS = 4, SIZE = 8, HIDDEN = 128, LAYERS = 2, THREE = 3 * WIDTH;
const NORM = 1e-5, WINDOW = 8, BASE = 1e4;
export const TRAINED = 16; // tokens of the longest string that a decoder is trained on
export const RANGE = 160; // places that random positions are drawn from, and that learned ones have a vector for

/** What each layer of a design is: `mixed` has RoPE (and the window) below, no positions above, as an entry of the race. */
export function layersOf({ positions, window, map }) {
  return Array.from({ length: LAYERS }, (_, layer) => {
    const below = layer % 2 === 0, mixed = positions === "mixed";
    return {
      turned: positions === "RoPE" || positions === "random" || (mixed && below),
      sloped: positions === "ALiBi",
      window: window && below ? WINDOW : 0,
      map: mixed && below ? "softmax" : map,
      start: 0.8 - 0.6 * Math.exp(-0.3 * layer), // of the difference's lambda
    };
  });
}

/** Names, shapes and places of the weights, as PyTorch calls them. */
function written(design, vocabulary) {
  const parts = [];
  let at = 0;
  const add = (name, shape, kind = "linear", fan = shape.at(-1)) => {
    const size = shape.reduce((a, b) => a * b, 1);
    parts.push({ name, shape, kind, fan, at, size });
    at += size;
  };
  add("embedding.weight", [vocabulary, WIDTH], "normal");
  if (design.positions === "learned") add("where.table.weight", [RANGE, WIDTH], "normal");
  layersOf(design).forEach(({ map }, layer) => {
    const own = (name) => `blocks.${layer}.${name}`;
    if (map === "difference")
      for (const name of ["queries", "keys", "values"]) add(own(`inner.${name}.weight`), [WIDTH, WIDTH]);
    else add(own("qkv.weight"), [THREE, WIDTH]);
    add(own(map === "difference" ? "inner.out.weight" : "out.weight"), [WIDTH, WIDTH]);
    add(own("mlp.0.weight"), [HIDDEN, WIDTH]);
    add(own("mlp.0.bias"), [HIDDEN], "linear", WIDTH);
    add(own("mlp.2.weight"), [WIDTH, HIDDEN]);
    add(own("mlp.2.bias"), [WIDTH], "linear", HIDDEN);
    for (const norm of ["norm1", "norm2"]) {
      add(own(`${norm}.weight`), [WIDTH], "one");
      add(own(`${norm}.bias`), [WIDTH], "zero");
    }
    if (map === "difference") add(own("inner.lambdas"), [2, 2, SIZE], "small");
    if (map === "scaled") add(own("weigh.scale"), [MAPS, 1, 1], "scale");
  });
  add("norm.weight", [WIDTH], "one");
  add("norm.bias", [WIDTH], "zero");
  add("head.weight", [vocabulary, WIDTH]);
  return { parts, size: at };
}

// Kernels

/** c[i, j] += sum over k of a[i, k] b[j, k], each with its strides; in tiles of 2 x 4, which stay in registers. */
function product(A, a, ai, ak, b, bj, bk, c, rows, columns, inner) {
  let i = 0;
  for (; i + 1 < rows; i += 2) {
    let j = 0;
    for (; j + 3 < columns; j += 4) {
      let s0 = 0, s1 = 0, s2 = 0, s3 = 0, t0 = 0, t1 = 0, t2 = 0, t3 = 0;
      let p = a + i * ai, q = b + j * bj;
      for (let k = 0; k < inner; k += 1) {
        const x = A[p], y = A[p + ai], u = A[q], v = A[q + bj], w = A[q + 2 * bj], z = A[q + 3 * bj];
        s0 += x * u; s1 += x * v; s2 += x * w; s3 += x * z;
        t0 += y * u; t1 += y * v; t2 += y * w; t3 += y * z;
        p += ak; q += bk;
      }
      const o = c + i * columns + j, n = o + columns;
      A[o] += s0; A[o + 1] += s1; A[o + 2] += s2; A[o + 3] += s3;
      A[n] += t0; A[n + 1] += t1; A[n + 2] += t2; A[n + 3] += t3;
    }
    for (; j < columns; j += 1)
      for (let r = i; r < i + 2; r += 1)
        single(A, a + r * ai, ak, b + j * bj, bk, c + r * columns + j, inner);
  }
  for (; i < rows; i += 1)
    for (let j = 0; j < columns; j += 1)
      single(A, a + i * ai, ak, b + j * bj, bk, c + i * columns + j, inner);
}

function single(A, p, ak, q, bk, o, inner) {
  let sum = 0;
  for (let k = 0; k < inner; k += 1) sum += A[p + k * ak] * A[q + k * bk];
  A[o] += sum;
}

/** y = x w', for so many tokens. */
function linear(A, x, w, y, tokens, ins, outs) {
  A.fill(0, y, y + tokens * outs);
  product(A, x, ins, 1, w, ins, 1, y, tokens, outs, ins);
}
/** What comes back through it: dw += dy' x, and dx = dy w. */
function linearBack(A, x, w, dy, dw, dx, tokens, ins, outs) {
  A.fill(0, dx, dx + tokens * ins);
  product(A, dy, 1, outs, x, 1, ins, dw, outs, ins, tokens);
  product(A, dy, outs, 1, w, 1, ins, dx, tokens, ins, outs);
}

function norm(A, x, w, b, hat, root, y, tokens) {
  for (let t = 0; t < tokens; t += 1) {
    const o = t * WIDTH;
    let mean = 0, square = 0;
    for (let k = 0; k < WIDTH; k += 1) mean += A[x + o + k];
    mean /= WIDTH;
    for (let k = 0; k < WIDTH; k += 1) square += (A[x + o + k] - mean) ** 2;
    const r = 1 / Math.sqrt(square / WIDTH + NORM);
    A[root + t] = r;
    for (let k = 0; k < WIDTH; k += 1) {
      const each = (A[x + o + k] - mean) * r;
      A[hat + o + k] = each;
      A[y + o + k] = each * A[w + k] + A[b + k];
    }
  }
}

/** dx += what comes back through the norm. */
function normBack(A, dy, w, hat, root, dw, db, dx, tokens) {
  for (let t = 0; t < tokens; t += 1) {
    const o = t * WIDTH;
    let mean = 0, dot = 0;
    for (let k = 0; k < WIDTH; k += 1) {
      const d = A[dy + o + k], each = d * A[w + k];
      A[dw + k] += d * A[hat + o + k];
      A[db + k] += d;
      mean += each;
      dot += each * A[hat + o + k];
    }
    mean /= WIDTH;
    dot /= WIDTH;
    for (let k = 0; k < WIDTH; k += 1)
      A[dx + o + k] += A[root + t] * (A[dy + o + k] * A[w + k] - mean - A[hat + o + k] * dot);
  }
}

// GELU, its slope and its bend on a grid from -9 to 9; between two of its points by a cubic, to 1e-14
const FINE = 1024, EDGE = 9;
const grid = [0, 1, 2].map(() => new Float64Array(2 * EDGE * FINE + 2));
for (let k = 0; k < grid[0].length; k += 1) {
  const x = k / FINE - EDGE, density = Math.exp((-x * x) / 2) / Math.sqrt(2 * Math.PI);
  let sum = x, term = x;
  for (let n = 1; n < 200 && sum + term !== sum; n += 1) sum += term *= (x * x) / (2 * n + 1);
  const below = 0.5 + sum * density;
  grid[0][k] = x * below;
  grid[1][k] = below + x * density;
  grid[2][k] = density * (2 - x * x);
}

function cubic(values, slopes, x, far) {
  if (x >= EDGE || !(x > -EDGE)) return x >= EDGE ? far : x * 0;
  const place = (x + EDGE) * FINE,
    k = Math.floor(place),
    u = place - k,
    v = 1 - u;
  return (
    v * v * ((1 + 2 * u) * values[k] + (u / FINE) * slopes[k]) +
    u * u * ((1 + 2 * v) * values[k + 1] - (v / FINE) * slopes[k + 1])
  );
}
const gelu = (x) => cubic(grid[0], grid[1], x, x);
const slope = (x) => cubic(grid[1], grid[2], x, 1);

/** Turn queries and keys by their places, or back. */
function turn(A, at, tokens, n, cos, sin, way) {
  const half = SIZE / 2;
  for (let t = 0; t < tokens; t += 1) for (let m = 0; m < 2 * MAPS; m += 1) for (let k = 0; k < half; k += 1) {
    const o = at + t * THREE + m * SIZE + k, c = cos[(t % n) * half + k], s = way * sin[(t % n) * half + k];
    const first = A[o], second = A[o + half];
    A[o] = first * c - second * s;
    A[o + half] = first * s + second * c;
  }
}

const softplus = (x) => Math.max(x, 0) + Math.log1p(Math.exp(-Math.abs(x)));

// The decoder

/**
 * A decoder of a design, with room for so many tokens at once and rows of `longest` tokens.
 * `forward` reads rows of ids and answers at the tokens `asked` alone; `backward` gives the loss of these answers and
 * leaves the gradients; `adam` makes a step.
 */
export function learner(design, vocabulary, { Numbers = Float32Array, tokens = 640, longest = 20 } = {}) {
  const layers = layersOf(design), { parts, size } = written(design, vocabulary), place = {};
  let end = 0;
  const take = (count) => ((end += count), end - count);
  const weights = take(size), gradients = take(size), first = take(size), second = take(size), wide = tokens * WIDTH;
  for (const { name, at } of parts) place[name] = weights + at;
  const kept = layers.map(() => ({
    x: take(wide),
    hat1: take(wide),
    root1: take(tokens),
    read1: take(wide),
    qkv: take(tokens * THREE),
    map: take(tokens * MAPS * longest),
    more: take(tokens * MAPS * longest),
    mixed: take(wide),
    level: take(tokens * MAPS),
    brought: take(wide),
    y: take(wide),
    hat2: take(wide),
    root2: take(tokens),
    read2: take(wide),
    inner: take(tokens * HIDDEN),
    act: take(tokens * HIDDEN),
  }));
  const last = {
    x: take(wide),
    hat: take(wide),
    root: take(tokens),
    read: take(wide),
    logits: take(tokens * vocabulary),
  };
  const back = {
    x: take(wide),
    y: take(wide),
    read: take(wide),
    brought: take(wide),
    mixed: take(wide),
    qkv: take(tokens * THREE),
    inner: take(tokens * HIDDEN),
    row: take(longest),
  };
  const A = new Numbers(end);
  const cos = new Float64Array((longest * SIZE) / 2),
    sin = new Float64Array((longest * SIZE) / 2),
    straight = Int32Array.from({ length: longest }, (_, k) => k);
  const every = Int32Array.from({ length: tokens }, (_, k) => k),
    slopes = Float64Array.from({ length: MAPS }, (_, m) => 2 ** ((-8 * (m + 1)) / MAPS));
  const turns = Float64Array.from({ length: SIZE / 2 }, (_, k) => BASE ** (-k / (SIZE / 2))),
    act = { lambda: null }; // what stops.js changes
  const root = 1 / Math.sqrt(SIZE),
    mu = { steps: 0 },
    now = { ids: every, n: 0, count: 0, asked: every, answers: 0 };
  const here = layers.map((_, layer) => {
    const own = (name) => place[`blocks.${layer}.${name}`];
    return {
      qkv: own("qkv.weight") ?? own("inner.queries.weight"),
      out: own("out.weight") ?? own("inner.out.weight"),
      up: own("mlp.0.weight"),
      upBias: own("mlp.0.bias"),
      down: own("mlp.2.weight"),
      downBias: own("mlp.2.bias"),
      w1: own("norm1.weight"),
      b1: own("norm1.bias"),
      w2: own("norm2.weight"),
      b2: own("norm2.bias"),
      lambdas: own("inner.lambdas") ?? -1,
      scale: own("weigh.scale") ?? -1,
    };
  });
  const table = place["embedding.weight"],
    where = place["where.table.weight"] ?? -1,
    head = place["head.weight"],
    way = gradients - weights;

  function lambdaOf(layer) {
    const at = here[layer].lambdas;
    let a = 0, b = 0;
    for (let k = 0; k < SIZE; k += 1) {
      a += A[at + k] * A[at + SIZE + k];
      b += A[at + 2 * SIZE + k] * A[at + 3 * SIZE + k];
    }
    return { a: Math.exp(a), b: Math.exp(b), lambda: act.lambda ?? Math.exp(a) - Math.exp(b) + layers[layer].start };
  }

  /** The maps of a layer at these tokens, and what each brings. */
  function attend(layer, asked, count, n) {
    const { qkv, map, more, mixed, level, brought } = kept[layer], { map: kind, window, sloped, start } = layers[layer];
    const two = kind === "difference", lambda = two ? lambdaOf(layer).lambda : 0, wide = two ? 2 * SIZE : SIZE;
    const given = design.map === "difference" ? null : act.lambda; // of the map before, taken from each
    for (let e = 0; e < count; e += 1) {
      const t = asked[e], i = t % n, from = t - i, low = window ? Math.max(0, i - window + 1) : 0;
      A.fill(0, mixed + e * WIDTH, mixed + (e + 1) * WIDTH);
      for (let m = 0; m < MAPS; m += 1) {
        const p = map + (e * MAPS + m) * n,
          r = more + (e * MAPS + m) * n,
          q = qkv + t * THREE + m * SIZE,
          tilt = sloped ? slopes[m] : 0;
        const factor = kind === "scaled" ? A[here[layer].scale + m] * Math.log(i - low + 1) : 1;
        let top = -Infinity, total = 0;
        for (let j = 0; j < low; j += 1) A[p + j] = 0;
        for (let j = low; j <= i; j += 1) {
          const k = qkv + (from + j) * THREE + WIDTH + m * SIZE;
          let sum = 0;
          for (let c = 0; c < SIZE; c += 1) sum += A[q + c] * A[k + c];
          const x = sum * root - tilt * (i - j);
          A[r + j] = x;
          A[p + j] = x * factor;
          if (A[p + j] > top) top = A[p + j];
        }
        for (let j = i + 1; j < n; j += 1) A[p + j] = 0;
        if (kind === "stick") {
          let after = 0;
          A[p + i] = 0;
          A[r + i] = 0;
          for (let j = i - 1; j >= low; j -= 1) {
            const x = A[r + j], open = softplus(-x);
            A[p + j] = Math.exp(after - open);
            A[r + j] = Math.exp(-open);
            after -= softplus(x);
          }
        } else {
          for (let j = low; j <= i; j += 1) total += A[p + j] = Math.exp(A[p + j] - top);
          for (let j = low; j <= i; j += 1) A[p + j] /= total;
        }
      }
      for (let m = 0; m < MAPS; m += 1) {
        const p = map + (e * MAPS + m) * n, other = map + (e * MAPS + ((m + 3) % MAPS)) * n;
        const at = two ? (m >> 1) * wide : m * SIZE, o = mixed + e * WIDTH + at, gain = two && m % 2 ? -lambda : 1;
        for (let j = low; j <= i; j += 1) {
          const w = given === null ? gain * A[p + j] : A[p + j] - given * A[other + j],
            v = qkv + (from + j) * THREE + 2 * WIDTH + at;
          for (let c = 0; c < wide; c += 1) A[o + c] += w * A[v + c];
        }
      }
      for (let h = 0; two && h < 2; h += 1) {
        const o = e * WIDTH + h * wide;
        let square = 0;
        for (let c = 0; c < wide; c += 1) square += A[mixed + o + c] ** 2;
        A[level + e * 2 + h] = 1 / Math.sqrt(square / wide + NORM);
        for (let c = 0; c < wide; c += 1) A[brought + o + c] = A[mixed + o + c] * A[level + e * 2 + h] * (1 - start);
      }
    }
    return two ? brought : mixed;
  }

  function attendBack(layer, asked, count, n) {
    const { qkv, map, more, mixed, level } = kept[layer],
      { map: kind, window, start } = layers[layer],
      own = here[layer];
    const two = kind === "difference",
      found = two ? lambdaOf(layer) : { a: 0, b: 0, lambda: 0 },
      wide = two ? 2 * SIZE : SIZE,
      d = two ? back.mixed : back.brought;
    let tilt = 0;
    for (let e = 0; e < count; e += 1) {
      const t = asked[e], i = t % n, from = t - i, low = window ? Math.max(0, i - window + 1) : 0;
      for (let h = 0; two && h < 2; h += 1) {
        const o = e * WIDTH + h * wide, r = A[level + e * 2 + h];
        let dot = 0;
        for (let c = 0; c < wide; c += 1) dot += A[back.brought + o + c] * A[mixed + o + c];
        for (let c = 0; c < wide; c += 1)
          A[d + o + c] =
            (1 - start) * (r * A[back.brought + o + c] - (A[mixed + o + c] * r ** 3 * dot) / wide);
      }
      for (let m = 0; m < MAPS; m += 1) {
        const p = map + (e * MAPS + m) * n,
          r = more + (e * MAPS + m) * n,
          q = qkv + t * THREE + m * SIZE,
          dq = back.qkv + t * THREE + m * SIZE;
        const at = two ? (m >> 1) * wide : m * SIZE,
          o = d + e * WIDTH + at,
          gain = two && m % 2 ? -found.lambda : 1;
        const log = kind === "scaled" ? Math.log(i - low + 1) : 0,
          factor = kind === "scaled" ? A[own.scale + m] * log : 1;
        let dot = 0,
          scaled = 0;
        for (let j = low; j <= i; j += 1) {
          const v = qkv + (from + j) * THREE + 2 * WIDTH + at, dv = v - qkv + back.qkv, w = gain * A[p + j];
          let g = 0;
          for (let c = 0; c < wide; c += 1) {
            g += A[o + c] * A[v + c];
            A[dv + c] += w * A[o + c];
          }
          A[back.row + j] = g;
          dot += g * A[p + j];
        }
        if (two && m % 2) tilt -= dot;
        let before = 0;
        for (let j = low; j <= i; j += 1) {
          const w = A[p + j], g = A[back.row + j];
          let ds;
          if (kind === "stick") {
            const open = A[r + j];
            ds = g * w * (1 - open) - open * before;
            before += g * w;
          } else {
            ds = gain * w * (g - dot);
            if (kind === "scaled") scaled += ds * A[r + j] * log;
          }
          ds *= factor * root;
          const k = qkv + (from + j) * THREE + WIDTH + m * SIZE, dk = k - qkv + back.qkv;
          for (let c = 0; c < SIZE; c += 1) {
            A[dq + c] += ds * A[k + c];
            A[dk + c] += ds * A[q + c];
          }
        }
        if (kind === "scaled") A[own.scale + m + way] += scaled;
      }
    }
    for (let c = 0; two && c < 4 * SIZE; c += 1) { // lambda's four vectors: each against its partner
      const at = own.lambdas, partner = c ^ SIZE, sign = c < 2 * SIZE ? found.a : -found.b;
      A[at + c + way] += tilt * sign * A[at + partner];
    }
  }

  /** Logits at the tokens asked, from rows of n ids, one row after the other; `places` turns by other places than 0, 1, … */
  function forward(ids, rows, n, asked = every, answers = rows * n, places = straight) {
    const count = rows * n,
      half = SIZE / 2;
    if (count > tokens || n > longest || (where >= 0 && n > RANGE))
      throw new Error(`There is not enough memory for ${rows} rows of ${n} tokens.`);
    Object.assign(now, { ids, n, count, asked, answers });
    for (let i = 0; i < n; i += 1) for (let k = 0; k < half; k += 1) {
      const angle = places[i] * turns[k];
      cos[i * half + k] = Math.cos(angle);
      sin[i * half + k] = Math.sin(angle);
    }
    for (let t = 0; t < count; t += 1)
      for (let k = 0; k < WIDTH; k += 1)
        A[kept[0].x + t * WIDTH + k] =
          A[table + ids[t] * WIDTH + k] + (where < 0 ? 0 : A[where + (t % n) * WIDTH + k]);
    for (let layer = 0; layer < LAYERS; layer += 1) {
      const own = here[layer],
        tape = kept[layer],
        top = layer === LAYERS - 1,
        list = top ? asked : every,
        some = top ? answers : count;
      const next = top ? last.x : kept[layer + 1].x;
      norm(A, tape.x, own.w1, own.b1, tape.hat1, tape.root1, tape.read1, count);
      linear(A, tape.read1, own.qkv, tape.qkv, count, WIDTH, THREE);
      if (layers[layer].turned) turn(A, tape.qkv, count, n, cos, sin, 1);
      linear(A, attend(layer, list, some, n), own.out, tape.y, some, WIDTH, WIDTH);
      for (let e = 0; e < some; e += 1)
        for (let k = 0; k < WIDTH; k += 1) A[tape.y + e * WIDTH + k] += A[tape.x + list[e] * WIDTH + k];
      norm(A, tape.y, own.w2, own.b2, tape.hat2, tape.root2, tape.read2, some);
      linear(A, tape.read2, own.up, tape.inner, some, WIDTH, HIDDEN);
      for (let e = 0; e < some; e += 1)
        for (let k = 0; k < HIDDEN; k += 1)
          A[tape.act + e * HIDDEN + k] = gelu((A[tape.inner + e * HIDDEN + k] += A[own.upBias + k]));
      linear(A, tape.act, own.down, next, some, HIDDEN, WIDTH);
      for (let e = 0; e < some; e += 1)
        for (let k = 0; k < WIDTH; k += 1)
          A[next + e * WIDTH + k] += A[own.downBias + k] + A[tape.y + e * WIDTH + k];
    }
    norm(A, last.x, place["norm.weight"], place["norm.bias"], last.hat, last.root, last.read, answers);
    linear(A, last.read, head, last.logits, answers, WIDTH, vocabulary);
  }

  /** The mean cross-entropy of what `forward` answered. It leaves the gradients, and overwrites the logits; without targets, their gradients are there. */
  function backward(targets) {
    const { ids, n, count, asked, answers } = now;
    let loss = 0;
    A.fill(0, gradients, gradients + size);
    for (let e = 0; targets && e < answers; e += 1) {
      const o = last.logits + e * vocabulary;
      let top = -Infinity, total = 0;
      for (let k = 0; k < vocabulary; k += 1) top = Math.max(top, A[o + k]);
      for (let k = 0; k < vocabulary; k += 1) total += Math.exp(A[o + k] - top);
      loss -= A[o + targets[e]] - top - Math.log(total);
      for (let k = 0; k < vocabulary; k += 1)
        A[o + k] = (Math.exp(A[o + k] - top) / total - (k === targets[e] ? 1 : 0)) / answers;
    }
    A.fill(0, back.x, back.x + answers * WIDTH);
    linearBack(A, last.read, head, last.logits, head + way, back.read, answers, WIDTH, vocabulary);
    normBack(
      A,
      back.read,
      place["norm.weight"],
      last.hat,
      last.root,
      place["norm.weight"] + way,
      place["norm.bias"] + way,
      back.x,
      answers,
    );
    for (let layer = LAYERS - 1; layer >= 0; layer -= 1) {
      const own = here[layer],
        tape = kept[layer],
        top = layer === LAYERS - 1,
        list = top ? asked : every,
        some = top ? answers : count;
      for (let e = 0; e < some; e += 1)
        for (let k = 0; k < WIDTH; k += 1) A[own.downBias + way + k] += A[back.x + e * WIDTH + k];
      linearBack(A, tape.act, own.down, back.x, own.down + way, back.inner, some, HIDDEN, WIDTH);
      for (let e = 0; e < some; e += 1)
        for (let k = 0; k < HIDDEN; k += 1)
          A[own.upBias + way + k] += A[back.inner + e * HIDDEN + k] *= slope(A[tape.inner + e * HIDDEN + k]);
      linearBack(A, tape.read2, own.up, back.inner, own.up + way, back.read, some, WIDTH, HIDDEN);
      A.copyWithin(back.y, back.x, back.x + some * WIDTH);
      normBack(A, back.read, own.w2, tape.hat2, tape.root2, own.w2 + way, own.b2 + way, back.y, some);
      linearBack(
        A,
        layers[layer].map === "difference" ? tape.brought : tape.mixed,
        own.out,
        back.y,
        own.out + way,
        back.brought,
        some,
        WIDTH,
        WIDTH,
      );
      A.fill(0, back.qkv, back.qkv + count * THREE);
      attendBack(layer, list, some, n);
      if (layers[layer].turned) turn(A, back.qkv, count, n, cos, sin, -1);
      linearBack(A, tape.read1, own.qkv, back.qkv, own.qkv + way, back.read, count, WIDTH, THREE);
      A.fill(0, back.x, back.x + count * WIDTH);
      for (let e = 0; e < some; e += 1)
        for (let k = 0; k < WIDTH; k += 1) A[back.x + list[e] * WIDTH + k] += A[back.y + e * WIDTH + k];
      normBack(A, back.read, own.w1, tape.hat1, tape.root1, own.w1 + way, own.b1 + way, back.x, count);
    }
    for (let t = 0; t < count; t += 1) for (let k = 0; k < WIDTH; k += 1) {
      A[table + way + ids[t] * WIDTH + k] += A[back.x + t * WIDTH + k];
      if (where >= 0) A[where + way + (t % n) * WIDTH + k] += A[back.x + t * WIDTH + k];
    }
    return loss / answers;
  }

  /** A step of AdamW without decay. */
  function adam(rate) {
    mu.steps += 1;
    const one = 1 - 0.9 ** mu.steps, two = Math.sqrt(1 - 0.999 ** mu.steps);
    for (let k = 0; k < size; k += 1) {
      const g = A[gradients + k], m = 0.9 * A[first + k] + 0.1 * g, v = 0.999 * A[second + k] + 0.001 * g * g;
      A[first + k] = m;
      A[second + k] = v;
      A[weights + k] -= ((rate / one) * m) / (Math.sqrt(v) / two + 1e-8);
    }
  }

  const view = (at, count) => A.subarray(at, at + count);
  return {
    design,
    vocabulary,
    parts,
    forward,
    backward,
    adam,
    layers,
    turns,
    act,
    places: straight,
    all: every,
    bytes: A.byteLength,
    width: WIDTH,
    weights: view(weights, size),
    gradients: view(gradients, size),
    logits: view(last.logits, tokens * vocabulary),
    states: view(last.read, wide),
    reached: view(back.x, wide),
    /** The maps of the last call in a layer, (asked, 4, n); of a difference, both maps of both heads. */
    maps: (layer) => view(kept[layer].map, (layer === LAYERS - 1 ? now.answers : now.count) * MAPS * now.n),
    scaleAtStart: 1 / Math.log(TRAINED),
  };
}

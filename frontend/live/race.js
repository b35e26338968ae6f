// The race in the page: its tasks, drawn by a generator of its own, its budget and criterion, and one run of training.
// Protocol: src/course/runs/protocol.py; tests/test_train.py holds the two together.
import { learner, RANGE, TRAINED } from "./learn.js";

/** What can be exchanged, and what each choice is called. */
export const PARTS = {
  positions: {
    RoPE: "RoPE",
    none: "none",
    ALiBi: "ALiBi",
    random: "RoPE, random positions",
    mixed: "RoPE below, none above",
    learned: "learned, as in Build it",
  },
  window: { 0: "none", 8: "8 tokens in layer 1" },
  map: { softmax: "softmax", scaled: "scaled softmax", difference: "difference of two maps", stick: "stick-breaking" },
};
const ENTRIES = {
  "RoPE 0 softmax": "RoPE",
  "none 0 softmax": "NoPE",
  "ALiBi 0 softmax": "ALiBi",
  "random 0 softmax": "RoPE, random positions",
  "RoPE 8 softmax": "sliding window",
  "mixed 0 softmax": "RoPE below, NoPE above",
  "mixed 8 softmax": "local RoPE, global NoPE",
  "RoPE 0 scaled": "scalable softmax",
  "none 0 scaled": "NoPE, scalable softmax",
  "none 0 stick": "NoPE, stick-breaking",
  "RoPE 0 difference": "differential",
  "none 0 difference": "NoPE, differential",
  "mixed 8 scaled": "local RoPE, global NoPE + scalable softmax",
  "mixed 8 stick": "local RoPE, global NoPE + stick-breaking",
};
/** The race's name of a design, "" where it has none. */
export const entryOf = ({ positions, window, map }) => ENTRIES[`${positions} ${window} ${map}`] ?? "";

/** Why a design cannot be, in a sentence, or "". */
export function refused({ positions, window, map }) {
  if (map === "difference" && positions !== "mixed" && (window || !["RoPE", "none"].includes(positions)))
    return "In the race, a difference of two maps sees all tokens, and it has RoPE or no positions. Choose other positions, or no window.";
  return "";
}

// The race's rate, those that the page offers, and where another one learned sooner at the trained length (data/race_plateau.csv).
export const RATE = 5e-3,
  RATES = [0.001, 0.002, 0.005, 0.01],
  WARMUP = 20,
  ROWS = 32,
  STEPS = 1000,
  CHECKED = 100,
  LEARNED = 0.98,
  LENGTHS = [16, 32, 64, 128];
export { TRAINED };
const BEST = { "retrieval: local RoPE, global NoPE": 0.002 };
/** The learning rate at which this design learns the task best, of those that were run; the race's where only one was. */
export const bestRate = (task, design) => BEST[`${task}: ${entryOf(design)}`] ?? RATE;
const STREAMS = { weights: 1, training: 2, criterion: 3, test: 4, places: 5, look: 6 };

/** What the trainer asks after a task in Chinese; the site's Chinese type is cut from this file. */
export const ASKED_IN_CHINESE = `训练只用长度不超过 ${TRAINED} 的行。请先猜：长度为 64 时，准确率还有多少？再按 Train。`;

/** Numbers from 0 to below 1 (mulberry32), the same for the same whole numbers. */
export function generator(...numbers) {
  let state = 0x9e3779b9;
  const next = () => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };
  for (const number of numbers) state = (Math.floor(next() * 4294967296) ^ Math.imul(number + 1, 0x85ebca6b)) | 0;
  return next;
}

const whole = (random, below) => Math.floor(random() * below);
/** The numbers below n in a random order. */
function shuffled(random, n) {
  const found = Array.from({ length: n }, (_, k) => k);
  for (let k = n - 1; k > 0; k -= 1) {
    const other = whole(random, k + 1);
    [found[k], found[other]] = [found[other], found[k]];
  }
  return found;
}

/** Letters of two kinds: how many of the second is drawn first, up to `most`, then their places. */
function letters(random, n, most) {
  const count = whole(random, most + 1), chosen = new Set(shuffled(random, n).slice(0, count));
  return Array.from({ length: n }, (_, k) => (chosen.has(k) ? 1 : 0));
}

const KEYS = [..."abcdefgh"], VALUES = [..."0123"], ASKED = 4;
// A row: its tokens, and answers as [place, token, the place that says it], which is called `says`. n is null in training, else the length of a test.
export const TASKS = {
  retrieval: {
    what: "find a pair by its key",
    example: "a1 c0 b1 … ?b has the answer 1",
    means: "A pair is a key with its value: b1 gives the key b the value 1, and ?b asks for this value.",
    chinese:
      "一行由若干键值对组成：b1 表示键 b 的值是 1，?b 询问键 b 的值。例如，a1 c0 b1 … ?b 的答案是 1。",
    tested: 64,
    unit: "pairs",
    says: "its pair",
    chance: 1 / 4,
    vocabulary: [
      "<pad>",
      ...VALUES,
      ...KEYS.map((key) => `?${key}`),
      ...KEYS.flatMap((key) => VALUES.map((value) => key + value)),
      "|",
    ],
    length: (random) => 4 + whole(random, TRAINED - 3), // one for a batch
    row(random, n) {
      const order = shuffled(random, KEYS.length), places = shuffled(random, n).slice(0, ASKED);
      const keys = Array.from({ length: n }, () => order[ASKED + whole(random, KEYS.length - ASKED)]);
      places.forEach((place, k) => { keys[place] = order[k]; });
      const values = keys.map(() => whole(random, VALUES.length));
      const ids = [
        ...keys.map((key, k) => 13 + VALUES.length * key + values[k]),
        ...order.slice(0, ASKED).map((key) => 5 + key),
      ];
      return { ids, answers: places.map((place, k) => [n + k, 1 + values[place], place]) };
    },
  },
  last: {
    what: "copy the last digit",
    example: "<s> 1 1 0 last has the answer 0",
    means: "The token <s> begins a row, and the token last asks for the digit before it.",
    chinese: "<s> 表示一行的开头，last 询问它前面的那个数字。例如，<s> 1 1 0 last 的答案是 0。",
    tested: 128,
    unit: "digits",
    says: "the last digit",
    chance: 3 / 4,
    vocabulary: ["<pad>", "<s>", "first", "last", "0", "1", "|"],
    length: () => null, // one for each row
    row(random, n) {
      const digits = letters(random, n ?? (n = 1 + whole(random, TRAINED)), n);
      return { ids: [1, ...digits.map((digit) => 4 + digit), 3], answers: [[n + 1, 4 + digits[n - 1], n]] };
    },
  },
  counting: {
    what: "count the y",
    example: "<s> x y y has the answer 2",
    means: "The token <s> begins a row, and the answer is the number of y up to its end.",
    chinese: "<s> 表示一行的开头，答案是这一行中 y 的个数。例如，<s> x y y 的答案是 2。",
    tested: 128,
    unit: "letters",
    says: "the last letter",
    chance: 1 / (TRAINED + 1),
    vocabulary: [
      "<pad>",
      "<s>",
      "=",
      ...Array.from({ length: TRAINED + 1 }, (_, k) => String(k)),
      "x",
      "y",
      "|",
    ],
    length: () => null,
    row(random, n) {
      const share = random(),
        found = n
          ? letters(random, n, Math.min(n, TRAINED))
          : Array.from({ length: TRAINED }, () => (random() < share ? 1 : 0));
      let count = 0;
      const answers = found.map((y, k) => [k + 1, 3 + (count += y), k + 1]);
      return { ids: [1, ...found.map((y) => 20 + y)], answers: n ? answers.slice(-1) : answers };
    },
  },
};

/** Rows of one batch, filled up on the right with tokens 0: what `forward` and `backward` read. */
export function batch(task, random, rows, n = null) {
  const length = n ?? task.length(random),
    drawn = Array.from({ length: rows }, () => task.row(random, length));
  const longest = Math.max(...drawn.map(({ ids }) => ids.length)),
    ids = new Int32Array(rows * longest),
    asked = [],
    targets = [],
    sources = [];
  drawn.forEach(({ ids: own, answers }, row) => {
    ids.set(own, row * longest);
    for (const [place, token, source] of answers) {
      asked.push(row * longest + place);
      targets.push(token);
      sources.push(source);
    }
  });
  return { ids, rows, n: longest, asked: Int32Array.from(asked), targets: Int32Array.from(targets), sources };
}

/** n places from 0 to `RANGE` - 1 in order (or from a wider range), for the design that draws them. */
export function drawn(random, n) {
  return Int32Array.from(shuffled(random, Math.max(RANGE, n + Math.floor(n / 4))).slice(0, n).sort((a, b) => a - b));
}

/** Where a row of n tokens stands. */
export const placesOf = (own, n, random = null) =>
  own.design.positions === "random" ? drawn(random ?? generator(STREAMS.places, n), n) : own.places;

/** An untrained decoder of a design: its weights are drawn as PyTorch draws them, by the seed. */
export function begun(design, task, seed, room) {
  const own = learner(design, TASKS[task].vocabulary.length, room), random = generator(STREAMS.weights, seed);
  const normal = () => Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random());
  const kinds = { one: () => 1, zero: () => 0, normal, small: () => 0.1 * normal(), scale: () => own.scaleAtStart };
  for (const { at, size, kind, fan } of own.parts) {
    const made = kinds[kind] ?? (() => (2 * random() - 1) / Math.sqrt(fan));
    for (let k = at; k < at + size; k += 1) own.weights[k] = made();
  }
  return own;
}

/** One step on the batch of its number; its loss. */
export function stepped(own, task, seed, step, rate = RATE) {
  const random = generator(STREAMS.training, seed, step),
    { ids, rows, n, asked, targets } = batch(TASKS[task], random, ROWS);
  own.forward(ids, rows, n, asked, asked.length, placesOf(own, n, random));
  const loss = own.backward(targets);
  own.adam(rate * Math.min(1, step / WARMUP));
  return loss;
}

/** The answers to a batch's questions, as many rows at once as there is room for. */
function answered(own, { ids, rows, n, asked, targets }, room = 640) {
  const some = Math.max(1, Math.floor(room / n)), each = asked.length / rows, v = own.vocabulary, found = [];
  for (let row = 0; row < rows; row += some) {
    const count = Math.min(some, rows - row),
      here = asked.slice(row * each, (row + count) * each).map((t) => t - row * n);
    own.forward(ids.subarray(row * n, (row + count) * n), count, n, here, here.length, placesOf(own, n));
    for (let e = 0; e < here.length; e += 1) {
      let best = 0;
      for (let k = 1; k < v; k += 1) if (own.logits[e * v + k] > own.logits[e * v + best]) best = k;
      found.push(best);
    }
  }
  return { found, right: found.filter((answer, k) => answer === targets[k]).length };
}

/** How many are right on rows of length n that the seed gives, and of how many. */
export function right(own, task, seed, n, rows = TASKS[task].tested) {
  const asked = batch(TASKS[task], generator(STREAMS.test, seed, n), rows, n);
  return { right: answered(own, asked).right, of: asked.targets.length };
}

/** Right in `LEARNED` of the answers, on rows of their own at the trained length. */
export function learned(own, task) {
  const asked = batch(TASKS[task], generator(STREAMS.criterion), 2 * TASKS[task].tested, TRAINED);
  return answered(own, asked).right >= LEARNED * asked.targets.length;
}

/** The row of length n that is looked at. */
export const looked = (task, n) => batch(TASKS[task], generator(STREAMS.look, n), 1, n);

/** That row's maps in both layers, (n, 4, n), and the answer to its last question. */
export function look(own, task, n) {
  const asked = looked(task, n), { found } = answered(own, asked);
  own.forward(asked.ids, 1, asked.n, own.all, asked.n, placesOf(own, asked.n));
  const maps = [0, 1].map((layer) => Float32Array.from(own.maps(layer))), words = TASKS[task].vocabulary;
  return {
    n: asked.n,
    maps,
    words: [...asked.ids].map((id) => words[id]),
    source: asked.sources.at(-1),
    answer: words[found.at(-1)],
    right: words[asked.targets.at(-1)],
  };
}

/** A run by the race's rules: to the criterion, looked at every `CHECKED` steps, or through the budget. */
export function run(design, task, seed, room, watch = (_step, _loss, _own) => {}, rate = RATE) {
  const own = begun(design, task, seed, room);
  let steps = 0, done = false;
  while (!done && steps < STEPS) {
    const loss = stepped(own, task, seed, (steps += 1), rate);
    watch(steps, loss, own);
    done = steps % CHECKED === 0 && learned(own, task);
  }
  return { own, steps, learned: done, right: LENGTHS.map((n) => right(own, task, seed, n)) };
}

// To and from a file, as PyTorch's safetensors

/** The weights in float32, with what they are in the head of the file. */
export function toFile(own, facts) {
  const entries = own.parts.map(({ name, shape, at, size }) => [
    name,
    { dtype: "F32", shape, data_offsets: [4 * at, 4 * (at + size)] },
  ]);
  const text = new TextEncoder().encode(
    JSON.stringify({ __metadata__: facts, ...Object.fromEntries(entries) }),
  );
  const head = Math.ceil(text.length / 8) * 8,
    bytes = new Uint8Array(8 + head + 4 * own.weights.length).fill(32, 8, 8 + head);
  new DataView(bytes.buffer).setBigUint64(0, BigInt(head), true);
  bytes.set(text, 8);
  new Float32Array(bytes.buffer, 8 + head).set(own.weights);
  return bytes;
}

/** What a file holds: the decoder, its task, and what the head says. Throws a sentence where it holds something else. */
export function fromFile(buffer, room) {
  const none = (why) => new Error(`This file holds no decoder of this page or of “Build it”, because ${why}.`);
  if (buffer.byteLength < 9) throw none("it is too short");
  const head = Number(new DataView(buffer).getBigUint64(0, true));
  if (head > buffer.byteLength - 8) throw none("it is incomplete, or it is not a safetensors file");
  let tensors;
  try {
    tensors = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 8, head)));
  } catch {
    throw none("its header cannot be read");
  }
  if (!tensors || typeof tensors !== "object") throw none("its header cannot be read");
  const facts = tensors.__metadata__ ?? {},
    has = (part) => Object.keys(tensors).some((name) => name.includes(part)),
    [vocabulary] = tensors["embedding.weight"]?.shape ?? [0];
  const task = Object.keys(TASKS).find((name) => [0, 1].includes(TASKS[name].vocabulary.length - vocabulary)); // with or without the separator
  if (!task) throw none("it was trained with another vocabulary");
  let design = {
    positions: has("where.table") ? "learned" : "none",
    window: 0,
    map: has("lambdas") ? "difference" : has("weigh.scale") ? "scaled" : "softmax",
  };
  try {
    design = { ...design, ...JSON.parse(facts.design ?? "{}") };
  } catch {
    /* as its weights say */
  }
  if (Object.entries(PARTS).some(([part, names]) => !Object.hasOwn(names, design[part])) || refused(design))
    throw none("this page does not know its design");
  const own = learner(design, vocabulary, room);
  for (const { name, shape, at, size } of own.parts) {
    const {
        dtype,
        shape: theirs,
        data_offsets: [from, to],
      } = tensors[name] ?? { data_offsets: [0, 0] },
      wide = { F32: 4, F64: 8 }[dtype];
    if (
      !wide ||
      String(theirs) !== String(shape) ||
      to - from !== wide * size ||
      8 + head + to > buffer.byteLength
    )
      throw none(`${name} is missing or has another shape`);
    const bytes = buffer.slice(8 + head + from, 8 + head + to);
    own.weights.set(wide === 4 ? new Float32Array(bytes) : new Float64Array(bytes), at);
  }
  if (!own.weights.every(Number.isFinite)) throw none("a weight is not a finite number");
  return { own, task, facts };
}

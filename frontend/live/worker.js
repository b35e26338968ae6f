// The model, off the page's thread: fetched in parts that are checked and kept, then run by onnxruntime-web. What is
// written in the page stays in the page: this asks the page's own site for its files, and nobody for anything else.
import * as ort from "./ort.wasm.bundle.min.mjs";
import { Tokenizer } from "./tokenizers.min.mjs";

const KEPT = "connection-bottlenecks-model";
let session, tokenizer, shape, names;
const pasts = new Map();

const hex = (bytes) => Array.from(new Uint8Array(bytes), (b) => b.toString(16).padStart(2, "0")).join("");
const right = async (bytes, file) =>
  bytes.byteLength === file.bytes && hex(await crypto.subtle.digest("SHA-256", bytes)) === file.sha256;

async function unpacked(bytes) {
  return new Uint8Array(
    await new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"))).arrayBuffer(),
  );
}

/** A part from the browser's store, or from the site, twice if need be; never one whose hash is wrong. */
async function part(file, store, progress) {
  const url = new URL(file.name, import.meta.url).href;
  const found = await store?.match(url).catch(() => null);
  if (found) {
    const bytes = await found.arrayBuffer();
    if (await right(bytes, file)) return progress(file.bytes), bytes;
    await store.delete(url);
  }
  let trouble = "";
  for (const cache of /** @type {RequestCache[]} */ (["default", "reload", "reload"])) {
    let seen = 0;
    try {
      const answer = await fetch(url, { cache });
      if (!answer.ok) throw new Error(`the site answers ${answer.status}`);
      const pieces = [];
      for (const reader = answer.body.getReader(); ; ) {
        const { done, value } = await reader.read();
        if (done) break;
        pieces.push(value);
        progress(value.length);
        seen += value.length;
      }
      const bytes = await new Blob(pieces).arrayBuffer();
      if (await right(bytes, file)) {
        await store
          ?.put(url, new Response(bytes))
          .catch(() =>
            self.postMessage({
              note: "The browser has no room to keep the model, so the next visit loads it again.",
            }),
          );
        return bytes;
      }
      trouble = "it arrived damaged";
    } catch (error) {
      trouble = error.message;
    }
    progress(-seen);
  }
  throw new Error(
    `${file.name} could not be loaded (${trouble}). The part that has arrived is kept. Press the button to go on.`,
  );
}

async function load({ threads = Math.min(4, Math.max(1, navigator.hardwareConcurrency >> 1)) }) {
  if (typeof WebAssembly !== "object" || typeof DecompressionStream !== "function")
    throw new Error("This browser has no WebAssembly (or is too old for this page), which the model needs.");
  if (!self.crypto?.subtle)
    throw new Error(
      "The model loads only over https or from localhost, because elsewhere a browser cannot check the files.",
    );
  const list = new URL("model.json", import.meta.url),
    answer = await fetch(list, { cache: "no-cache" }).catch(() => caches.match(list));
  if (!answer?.ok)
    throw new Error(
      `The list of the model's files, model.json, is not beside this page${answer ? ` (the site answers ${answer.status})` : ""}.`,
    );
  const { files, ...facts } = await answer.json();
  const store = await caches.open(KEPT).catch(() => null);
  store
    ?.put(new URL("model.json", import.meta.url).href, new Response(JSON.stringify({ files, ...facts })))
    .catch(() => {});
  const wanted = new Set([...files.map((file) => file.name), "model.json"]);
  for (const old of (await store?.keys().catch(() => [])) ?? [])
    if (!wanted.has(new URL(old.url).pathname.split("/").pop())) await store.delete(old);
  const total = files.reduce((sum, file) => sum + file.bytes, 0);
  let arrived = 0, last = -1;
  const progress = (bytes) => {
    arrived += bytes;
    const percent = Math.floor((100 * arrived) / total);
    if (percent !== last) self.postMessage({ progress: (last = percent), arrived, total });
  };
  const of = (kind) => files.filter((file) => file.part === kind);
  const wasm = await unpacked(await part(of("runtime")[0], store, progress));
  const text = JSON.parse(new TextDecoder().decode(await unpacked(await part(of("tokenizer")[0], store, progress))));
  const model = new Uint8Array(of("model").reduce((sum, file) => sum + file.bytes, 0));
  let at = 0;
  for (const file of of("model")) {
    model.set(new Uint8Array(await part(file, store, progress)), at);
    at += file.bytes;
  }
  self.postMessage({ progress: 100, arrived: total, total, starting: true });
  const start = performance.now();
  ort.env.wasm.wasmBinary = wasm.buffer;
  ort.env.wasm.numThreads = self.crossOriginIsolated ? threads : 1;
  ort.env.logLevel = "error";
  try {
    session = await ort.InferenceSession.create(model, { executionProviders: ["wasm"], logSeverityLevel: 3 });
  } catch (error) {
    throw new Error(
      `The model does not start. Most likely there is too little memory for it (it needs about 600 MB). ${String(error.message).slice(0, 120)}`,
    );
  }
  tokenizer = new Tokenizer(text.tokenizer, text.config);
  shape = facts.shape;
  names = session.outputNames;
  return { ...facts, seconds: (performance.now() - start) / 1000, threads: ort.env.wasm.numThreads };
}

const tokenize = ({ text }) => {
  const ids = text ? tokenizer.encode(text, { add_special_tokens: false }).ids : [];
  return ids.map((id) => ({ id, text: shown(id) }));
};
const written = ({ ids }) => tokenizer.decode(ids, { skip_special_tokens: false, clean_up_tokenization_spaces: false });

// A byte-level token is written in letters, one a byte: printable bytes as themselves, the others from U+0100 on
const printable = (byte) => (byte > 32 && byte < 127) || (byte > 160 && byte !== 173);
const BYTES = new Map();
for (let byte = 0, next = 256; byte < 256; byte += 1)
  BYTES.set(String.fromCharCode(printable(byte) ? byte : next++), byte);

/** A token's text; of one that holds a part of a letter, its bytes: ⟨E4⟩. */
function shown(id) {
  const text = written({ ids: [id] });
  if (!text.includes("\uFFFD")) return text;
  const bytes = Array.from(tokenizer.id_to_token(id), (c) => BYTES.get(c));
  return bytes.includes(undefined)
    ? text
    : bytes.map((byte) => `⟨${byte.toString(16).toUpperCase().padStart(2, "0")}⟩`).join("");
}

/** The first p tokens of a past (layers, 2, groups, 1, t, size). */
function cut(past, p) {
  const [layers, two, groups, one, t, size] = past.dims;
  if (p === t) return past;
  const out = new Float32Array(layers * two * groups * p * size);
  for (let k = 0; k < layers * two * groups; k += 1)
    out.set(past.data.subarray(k * t * size, (k * t + p) * size), k * p * size);
  return new ort.Tensor("float32", out, [layers, two, groups, one, p, size]);
}

/** One pass. `from` names a past that was kept and how many of its tokens count; `keep` names this one's. */
async function forward({ ids, cos, sin, bias, gain, rows, from, keep, want }) {
  const n = ids.length, p = from?.p ?? 0;
  const { layers, heads, groups, size } = shape;
  const float = (data, dims) => new ort.Tensor("float32", data, dims);
  const long = (data) => new ort.Tensor("int64", BigInt64Array.from(data, BigInt), [data.length]);
  const past = p ? cut(pasts.get(from.name), p) : float(new Float32Array(0), [layers, 2, groups, 1, 0, size]);
  const start = performance.now();
  const feeds = { ids: long(ids), rows: long(rows), cos: float(cos, [n, size]), sin: float(sin, [n, size]),
    bias: float(bias, [n, p + n]), gain: float(gain, [layers, heads]), past };
  const found = await session.run(feeds, keep ? [...want, "present"] : want);
  if (keep) pasts.set(keep, found.present);
  return {
    seconds: (performance.now() - start) / 1000,
    ...Object.fromEntries(want.map((name) => [name, found[name].data])),
  };
}

const calls = { load, tokenize, forward, written, shown: ({ ids }) => ids.map(shown) };
let queue = Promise.resolve();
self.onmessage = ({ data: { call, number, ...rest } }) => {
  queue = queue.then(async () => {
    try {
      const value = await calls[call](rest);
      const buffers = Object.values(value ?? {})
        .filter((each) => each instanceof Float32Array)
        .map((each) => each.buffer);
      self.postMessage({ number, value }, { transfer: buffers });
    } catch (error) {
      self.postMessage({ number, error: String(error?.message ?? error).slice(0, 400) });
    }
  });
};

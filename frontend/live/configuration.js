// What a configuration alone says, computed in the page: the same as src/course/report/configuration.py and configured.py,
// number by number and sentence by sentence (tests/test_configuration.py). `use` gets what tools/live.py ships: defaults by
// model type, sentences, bases of RoPE, well-known configurations.

const NEEDED = ["num_hidden_layers", "hidden_size", "num_attention_heads"];
const PARTS = ["text_config", "language_config", "llm_config"];
const FORMATS = { bfloat16: [2, "bf16", 188], float16: [2, "fp16", 1463], float32: [4, "fp32", null], float64: [8, "fp64", null] };
const SCALINGS = ["default", "linear", "dynamic", "yarn", "llama3", "longrope", "proportional"];
const KINDS = ["full_attention", "sliding_attention", "chunked_attention", "attention"];
const ASKED = 100_000, LARGEST = 2_000_000, DOUBT = 1e-9;
export const TOKENS = 2 ** 20;
export const MARKS = { breaks: "▲", late: "●", open: "?", holds: "✓", note: "" };

/** @type {any} */
let shipped = null;
/** Take what the site ships: `families`, `sentences`, `bases`, `known`. */
export const use = (given) => { shipped = given; };
export const known = () => shipped.known;
export const words = () => shipped.sentences;

/** A configuration that cannot be read: a key of the sentences and what fills it. */
export class Refused extends Error {
  constructor(key, slots = {}) {
    super(key);
    this.key = key;
    this.slots = slots;
  }
  said(language) { return filled(shipped.sentences.refused[this.key][language], this.slots, String); }
}

const filled = (text, slots, form = say) => text.replace(/\{\{|\}\}|\{(\w+)\}/g, (whole, name) => (whole === "{{" ? "{" : whole === "}}" ? "}" : form(slots[name])));
const isObject = (value) => typeof value === "object" && value !== null && !Array.isArray(value);
const has = (value) => value !== undefined && value !== null;
const own = (object, name) => (isObject(object) && Object.hasOwn(object, name) ? object[name] : undefined);
const number = (value, least, most, whole = false) => typeof value === "number" && least <= value && value <= most && (!whole || Number.isInteger(value));

/** The completed configuration of a text; throws `Refused`. */
export function parsed(text) {
  const bare = text.replace(/^\uFEFF/, "");
  if (!bare.trim()) throw new Refused("empty");
  if ([...bare.slice(0, 1000)].some((c) => c.charCodeAt(0) < 9 || c === "\uFFFD")) throw new Refused("binary");
  if (text.length > LARGEST) throw new Refused("large", { most: LARGEST });
  let found;
  try {
    found = JSON.parse(bare);
  } catch {
    throw new Refused("json");
  }
  if (!isObject(found)) throw new Refused("object");
  return completed(ofText(found));
}

function ofText(found) {
  const there = (name) => Object.hasOwn(found, name);
  if (!there("model_type") && !there("num_hidden_layers")) {
    if (there("weight_map")) throw new Refused("index");
    if (there("tokenizer_class") || there("added_tokens")) throw new Refused("tokenizer");
  }
  for (const name of PARTS) {
    if (isObject(own(found, name))) {
      const outer = Object.fromEntries(["dtype", "torch_dtype", "_name_or_path"].filter(there).map((each) => [each, found[each]]));
      return { ...outer, ...found[name] };
    }
  }
  return found;
}

/** A configuration with the fields of its model type that the file leaves out. */
export function completed(config) {
  const kind = config.model_type, families = shipped.families;
  const family = typeof kind === "string" ? own(families.families, kind) ?? {} : {};
  if (config.is_encoder_decoder === true || family.encoder) throw new Refused("encoder", { kind: typeof kind === "string" ? kind : "None" });
  const found = { ...config };
  for (const [old, fresh] of Object.entries({ ...families.aliases, ...(family.aliases ?? {}) })) {
    if (!has(found[fresh]) && has(config[old])) found[fresh] = config[old];
  }
  const said = { ...found };
  for (const [name, value] of Object.entries(family.defaults ?? {})) {
    if (!Object.hasOwn(found, name) || (found[name] === null && NEEDED.includes(name))) found[name] = value;
  }
  for (const name of NEEDED) if (!has(found[name])) throw new Refused("missing", { name, kind: typeof kind === "string" ? kind : "?" });
  for (const [name, [least, most]] of Object.entries(families.limits)) {
    if (has(found[name]) && !number(found[name], least, most, true)) throw new Refused("number", { name, least, most });
  }
  if (!found.head_dim && found.hidden_size < found.num_attention_heads) throw new Refused("divided");
  found.rope = ropeOf(said, family);
  found.layer_types = kindsOf(found, family);
  found.no_rope_layers = unrotated(found, family);
  return found;
}

const upTo = (count, make) => Array.from({ length: count }, (_, k) => make(k));

function kindsOf(found, family) {
  const count = found.num_hidden_layers;
  for (const name of ["layer_types", "layers_block_type", "block_types"]) {
    let listed = found[name];
    if (!has(listed)) continue;
    if (!Array.isArray(listed) || !listed.every((each) => typeof each === "string")) throw new Refused("kinds");
    if (name === "block_types" && listed.length) listed = upTo(count, (k) => listed[k % listed.length]);
    if (listed.length < count) throw new Refused("types", { layers: count, have: listed.length });
    return listed.slice(0, count);
  }
  if (family.irregular) throw new Refused("layout", { kind: found.model_type });
  const period = found.attn_layer_period, offset = found.attn_layer_offset || 0, indices = found.attn_layer_indices;
  if (period) return upTo(count, (k) => (k % period === offset ? "full_attention" : "linear_attention"));
  if (Array.isArray(indices)) return upTo(count, (k) => (indices.includes(k) ? "full_attention" : "linear_attention"));
  let cycle = family.layers;
  const every = family.interval ? found[family.interval] : null;
  if (every) cycle = [...upTo(every - 1, () => cycle[0]), "full_attention"];
  if (cycle) return upTo(count, (k) => cycle[k % cycle.length]);
  const windows = found.sliding_window && found.use_sliding_window !== false, first = found.max_window_layers || 0;
  return upTo(count, (k) => (windows && k >= first ? "sliding_attention" : "full_attention"));
}

function unrotated(found, family) {
  const listed = found.no_rope_layers, count = found.num_hidden_layers, every = found.no_rope_layer_interval;
  if (Array.isArray(listed) && listed.length >= count) return listed.slice(0, count).map((each) => (truthy(each) ? 1 : 0));
  if (every && family.unrotated) return upTo(count, (k) => ((k + 1) % every !== 0 ? 1 : 0));
  return null;
}
// as Python sees it: empty lists and objects are false
const truthy = (value) => Boolean(value) && !(Array.isArray(value) && !value.length) && !(isObject(value) && !Object.keys(value).length);

const nested = (settings) => isObject(settings) && Object.values(settings).some(isObject);

function ropeOf(config, family) {
  const plain = family.rope ?? null;
  if (Object.keys(family).length && plain === null) return {};
  for (const name of ["rope_parameters", "rope_scaling"]) if (has(config[name]) && !isObject(config[name])) throw new Refused("rope");
  const given = truthy(config.rope_parameters) ? config.rope_parameters : null;
  const kinds = nested(given) ? given : !given && nested(plain) ? plain : null;
  let found = {};
  if (kinds) {
    for (const [kind, each] of Object.entries(kinds)) {
      if (each === null) continue;
      if (!isObject(each)) throw new Refused("rope");
      found[kind] = { ...each };
    }
    if (!given) found = legacy(config, found);
  } else {
    const scaling = given ?? config.rope_scaling ?? {};
    let flat = plain === null || nested(plain) ? {} : { ...plain };
    if (given || Object.hasOwn(config, "rope_scaling")) {
      flat = Object.fromEntries(["rope_theta", "partial_rotary_factor"].filter((name) => Object.hasOwn(flat, name)).map((name) => [name, flat[name]]));
    }
    for (const name of ["rope_theta", "partial_rotary_factor"]) if (has(config[name])) flat[name] = config[name];
    if (flat.rope_theta || Object.keys(scaling).length) found = { "": { ...flat, ...scaling } };
  }
  return Object.fromEntries(Object.entries(found).map(([kind, each]) => [kind, settingsOf(each, config)]));
}

function legacy(config, found) {
  for (const [kind, theta] of [["sliding_attention", config.rope_local_base_freq], ["full_attention", config.rope_theta]]) {
    if (found[kind] && has(theta)) found[kind].rope_theta = theta;
  }
  if (isObject(config.rope_scaling) && found.full_attention) Object.assign(found.full_attention, config.rope_scaling);
  return found;
}

function settingsOf(settings, config) {
  const named = String(settings.rope_type || settings.type || "default"), type = own({ su: "longrope", mrope: "default", ntk: "dynamic" }, named) ?? named;
  const base = Object.hasOwn(settings, "rope_theta") ? settings.rope_theta : 10_000;
  if (!number(base, 1.000001, 1e15)) throw new Refused("base");
  const found = { type, base };
  for (const [name, plain, least, most] of shipped.families.scaling) {
    let value = settings[name];
    if (!has(value) && shipped.families.outside.includes(name)) value = config[name];
    if (!has(value)) value = plain;
    if (value === null && name === "factor" && ["linear", "dynamic", "yarn", "llama3"].includes(type)) throw new Refused("scaling", { name, least, most });
    if (value !== null && !number(value, least, most)) throw new Refused("scaling", { name, least, most });
    found[name] = value;
  }
  found.truncate = settings.truncate !== false;
  found.short_factor = settings.short_factor ?? null;
  found.long_factor = settings.long_factor ?? null;
  return found;
}

const mixesOf = (kind) => (kind.startsWith("hybrid") ? "attention and a state space" : kind.includes("attention") && !kind.includes("linear") ? "attention" : kind.replaceAll("_", " "));
const groupOf = (config, kind) => (Object.hasOwn(config.rope, kind) ? kind : Object.hasOwn(config.rope, "") ? "" : null);
const attends = (layer) => layer.mixes.startsWith("attention");

/** What each layer mixes by, how far it sees (null: all) and whether it rotates. */
export function layers(config) {
  const windows = config.use_sliding_window !== false, only = shipped.families.rotate_in_windows.includes(config.model_type) && config.sliding_window;
  const size = (name) => {
    if (!has(config[name])) throw new Refused("window", { name });
    return config[name];
  };
  return config.layer_types.map((kind, k) => {
    const chunked = kind.includes("chunked");
    const window = kind.includes("sliding") && windows ? size("sliding_window") : chunked ? size("attention_chunk_size") : kind === "conv" ? config.conv_L_cache || 3 : null;
    const mixes = mixesOf(kind);
    let rotates = mixes.startsWith("attention") && groupOf(config, kind) !== null && !(config.no_rope_layers && !config.no_rope_layers[k]);
    if (only) rotates = rotates && window !== null;
    return { mixes, window, rotates, chunked, kind };
  });
}

function headWidth(config, kind = "") {
  if (kind === "full_attention" && config.global_head_dim) return config.global_head_dim;
  return config.head_dim || Math.floor(config.hidden_size / config.num_attention_heads);
}

function rotaryWidth(config, group) {
  const even = (width) => Math.max(2, 2 * Math.floor(Math.trunc(width) / 2)), rope = config.rope[group];
  if (config.kv_lora_rank && config.qk_rope_head_dim) return even(config.qk_rope_head_dim);
  if (config.rotary_dim) return even(config.rotary_dim);
  return even(headWidth(config, group) * (rope.type === "proportional" ? 1 : rope.partial_rotary_factor));
}

/** The radians a token of each rotary pair, after the scaling that the file names. */
export function frequencies(config, group, tokens) {
  const rope = config.rope[group], factor = rope.factor || 1, width = rotaryWidth(config, group);
  const context = config.max_position_embeddings || ASKED, original = rope.original_max_position_embeddings || config.original_max_position_embeddings || context;
  let base = rope.base;
  if (rope.type === "dynamic" && width > 2) base *= ((factor * Math.max(tokens, context)) / context - (factor - 1)) ** (width / (width - 2));
  const theta = upTo(width / 2, (i) => base ** ((-2 * i) / width));
  if (rope.type === "linear") return theta.map((each) => each / factor);
  if (rope.type === "proportional") {
    const turning = Math.floor(Math.trunc(rope.partial_rotary_factor * width / 2));
    return theta.map((each, i) => (i < turning ? each / factor : 0));
  }
  if (rope.type === "llama3") {
    const low = rope.low_freq_factor, high = rope.high_freq_factor;
    if (high <= low) throw new Refused("scaling", { name: "high_freq_factor", least: low, most: 1e9 });
    return theta.map((each) => {
      const kept = Math.min(1, Math.max(0, ((original * each) / (2 * Math.PI) - low) / (high - low)));
      return kept * each + ((1 - kept) * each) / factor;
    });
  }
  if (rope.type === "yarn") {
    const end = (turns) => (width * Math.log(original / (turns * 2 * Math.PI))) / (2 * Math.log(rope.base));
    let low = end(rope.beta_fast), high = end(rope.beta_slow);
    if (rope.truncate) [low, high] = [Math.floor(low), Math.ceil(high)];
    [low, high] = [Math.max(low, 0), Math.min(high, width - 1)];
    if (low === high) high += 0.001;
    return theta.map((each, i) => {
      const moved = Math.min(1, Math.max(0, (i - low) / (high - low)));
      return (each / factor) * moved + each * (1 - moved);
    });
  }
  if (rope.type === "longrope") {
    const name = tokens > original ? "long_factor" : "short_factor", by = rope[name];
    if (!Array.isArray(by) || by.length !== theta.length || !by.every((each) => number(each, 1e-9, 1e9))) throw new Refused("factors", { pairs: theta.length, name });
    return theta.map((each, i) => each / by[i]);
  }
  return theta;
}

/** By frequencies: up to which distance sums were computed, and the first negative one (0: none yet). */
const scanned = new Map();

/** The first distance below `limit` at which the sum of cosines is negative; 0 where there is none. */
export function firstNegative(theta, limit) {
  const key = theta.join(), from = scanned.get(key) ?? { to: 1, first: 0 };
  if (!from.first) {
    for (; from.to < limit && !from.first; from.to += 1) {
      let sum = 0;
      for (let i = 0; i < theta.length; i += 1) sum += Math.cos(from.to * theta[i]);
      if (sum < -DOUBT) from.first = from.to;
    }
    if (scanned.size > 200) scanned.clear();
    scanned.set(key, from);
  }
  return from.first && from.first < limit ? from.first : 0;
}

const smallestBase = (pairs, limit) => (own(shipped.bases, String(pairs)) ?? []).find(([, holds]) => holds >= limit)?.[0] ?? 0;

/** How far the first token can have come after each layer: positions from 0 to tokens − 1. */
export function arrivals(each, tokens) {
  let place = 0;
  return each.map(({ window, chunked }) => {
    place = window === null ? tokens - 1 : chunked ? Math.floor(place / window) * window + window - 1 : place + window - 1;
    return (place = Math.min(place, tokens - 1));
  });
}

function cacheWidth(config, kind = "") {
  if (config.kv_lora_rank) return config.kv_lora_rank + (config.qk_rope_head_dim || 0);
  const groups = kind === "full_attention" && config.num_global_key_value_heads ? config.num_global_key_value_heads : config.num_key_value_heads || config.num_attention_heads;
  return 2 * groups * headWidth(config, kind);
}

/** All numbers that follow for a text of so many tokens, or of the whole context. */
export function facts(config, tokens = null) {
  const context = config.max_position_embeddings || null, n = tokens ?? Math.min(context ?? ASKED, TOKENS);
  if (!number(n, 2, TOKENS, true)) throw new Refused("tokens", { most: TOKENS });
  const each = layers(config), arrives = arrivals(each, n);
  const named = String(config.dtype || config.torch_dtype || "").replace(/^torch\./, ""), said = Object.hasOwn(FORMATS, named);
  const [bytes, format, counts] = said ? FORMATS[named] : FORMATS.bfloat16;
  const attending = each.filter(attends), span = Math.max(0, ...attending.map(({ window }) => Math.min(n, window || n)));
  const keeping = each.slice(0, Math.max(0, config.num_hidden_layers - (config.num_kv_shared_layers || 0))).filter(attends);
  const windows = attending.filter(({ window }) => window).map(({ window }) => window), vocabulary = config.vocab_size;
  const original = [...Object.values(config.rope).map((rope) => rope.original_max_position_embeddings), config.original_max_position_embeddings].find(Boolean) ?? null;
  const sum = (list, value) => list.reduce((so, x) => so + value(x), 0);
  return {
    kind: has(config.model_type) && config.model_type ? String(config.model_type) : "",
    tokens: n,
    context,
    original,
    layers: each.map(({ mixes, window, rotates, chunked, kind }) => [mixes, window, rotates, chunked, kind]),
    arrives,
    reached: arrives.findIndex((place) => place >= n - 1) + 1,
    sees_all: attending.filter(({ window }) => window === null).length,
    states: each.filter((x) => !attends(x) && x.window === null).length,
    rope: Object.keys(config.rope).map((group) => turning(config, group, each, n)),
    format,
    format_said: said,
    bytes,
    counts,
    cache: bytes * sum(keeping, (x) => cacheWidth(config, x.kind) * Math.min(n, x.window || n)),
    cache_each: bytes * sum(keeping.filter(({ window }) => (window || n + 1) > n), (x) => cacheWidth(config, x.kind)),
    latent: config.kv_lora_rank ? cacheWidth(config) : 0,
    bits: 8 * bytes * config.hidden_size,
    bits_each: vocabulary > 1 ? Math.log2(vocabulary) : null,
    span,
    window: windows.length ? Math.min(...windows) : null,
    lead: span > 1 ? Math.log(span - 1) : null,
    local: each.some((x) => x.rotates && x.window) && each.some((x) => x.mixes === "attention" && x.window === null && !x.rotates),
    position: own(own(shipped.families.families, String(config.model_type)), "position") ?? "",
  };
}

function turning(config, group, each, n) {
  const rope = config.rope[group], mine = each.filter((x) => x.rotates && groupOf(config, x.kind) === group);
  const limit = Math.max(0, ...mine.map(({ window }) => Math.min(n, window || n))), theta = frequencies(config, group, n);
  const isKnown = SCALINGS.includes(rope.type), moving = theta.filter((x) => x > 0);
  return {
    kind: group,
    type: rope.type,
    known: isKnown,
    base: rope.base,
    pairs: theta.length,
    layers: mine.length,
    limit,
    first_negative: isKnown && limit ? firstNegative(theta, limit) : 0,
    slow: theta.filter((x) => x * limit < 2 * Math.PI).length,
    still: theta.length - moving.length,
    period: moving.length ? (2 * Math.PI) / Math.min(...moving) : null,
    smallest_base: limit ? smallestBase(theta.length, limit) : 0,
  };
}

/** A number in at most three digits if it is no whole number, with commas; a text as it is. */
export function say(value) {
  if (typeof value === "string") return value;
  if (Number.isInteger(value) || Math.abs(value) >= 1000) return Math.floor(value + (Number.isInteger(value) ? 0 : 0.5)).toLocaleString("en-US", { maximumFractionDigits: 0 });
  return String(Number(value.toPrecision(3)));
}

/** Bytes in the largest unit that fits. */
export function size(count) {
  for (const [unit, power] of /** @type {[string, number][]} */ ([["GiB", 30], ["MiB", 20], ["KiB", 10]])) {
    if (count >= 2 ** power) return `${say(count / 2 ** power)} ${unit}`;
  }
  return `${say(count)} bytes`;
}

/** The rows of sentences: key, name, state, text, formula, chapter. */
export function rows(found, language = "en") {
  const { rows: texts, parts } = shipped.sentences, made = [], n = found.tokens;
  const fill = (key, state, slots = {}) => filled(texts[key][state][language], slots);
  const part = (name, slots = {}) => filled(parts[name][language], slots);
  const add = (key, state, text) => made.push({ key, name: texts[key].name[language], state, text, formula: texts[key].formula, chapter: texts[key].chapter });

  if (!found.context) add("length", "open", fill("length", "open", { n }));
  else {
    const state = n > found.context ? "breaks" : "holds", stretched = found.original && found.original < found.context;
    add("length", state, fill("length", state, { n, context: found.context, times: n / found.context }) + (stretched ? fill("length", "stretched", { original: found.original }) : ""));
  }

  const count = found.layers.length, { reached } = found, furthest = found.arrives[count - 1], arrives = !reached ? "breaks" : reached === 1 ? "holds" : "late";
  add("reach", arrives, fill("reach", arrives, { n, layers: count, all: found.sees_all, reached, left: count - reached + 1, furthest: furthest + 1, span: furthest })
    + (found.states ? fill("reach", "state", { states: found.states }) : ""));

  for (const each of found.rope.filter(({ layers: some }) => some)) {
    const who = Object.hasOwn(parts, each.kind) ? part(each.kind) : "", slots = { who, base: each.base, pairs: each.pairs, limit: each.limit, type: each.type };
    if (!each.known) {
      add("base", "open", fill("base", "open", slots));
      continue;
    }
    const scaled = each.type !== "default", state = each.first_negative ? "breaks" : "holds";
    let text = fill("base", state, { ...slots, first: each.first_negative, scaling: scaled ? fill("base", "scaled", slots) : "" });
    if (each.smallest_base) {
      text += fill("base", "least", { least: each.smallest_base });
      if (each.first_negative && each.base >= each.smallest_base && !scaled) text += fill("base", "gap");
    } else text += fill("base", "none", slots);
    add("base", state, text);
    add("pairs", "note", fill("pairs", each.still ? "still" : "note", { ...slots, slow: each.slow, zero: each.still, period: each.period ?? 0 }));
  }
  if (!found.rope.some(({ layers: some }) => some)) add("positions", "note", fill("positions", found.position || "none", { context: found.context ?? 0 }));

  if (found.bits_each) {
    const needed = n * found.bits_each, state = needed > found.bits ? "breaks" : "holds";
    add("capacity", state, fill("capacity", state, { bits: found.bits, n, needed: Math.floor(needed + 0.5), fits: Math.floor(found.bits / found.bits_each) }));
  } else add("capacity", "open", fill("capacity", "open", { bits: found.bits }));
  if (found.span) {
    const state = found.counts && found.span > found.counts ? "breaks" : "holds";
    add("rounding", state, fill("rounding", state, { format: found.format, counts: found.counts ?? TOKENS, span: found.span }) + (found.format_said ? "" : fill("rounding", "assumed")));
  }
  if (found.lead !== null) {
    const near = found.window && found.window > 2 && found.window < found.span;
    add("shares", "open", fill("shares", "open", { n: found.span, lead: found.lead }) + (near ? fill("shares", "window", { window: found.window, smaller: Math.log(found.window - 1) }) : ""));
  }
  add("cache", "note", fill("cache", found.latent ? "latent" : "note", { size: size(found.cache), each: size(found.cache_each), n, bytes: found.bytes, width: found.latent }));

  const counted = new Map(), strange = [];
  for (const [mixes, window, rotates, chunked, kind] of found.layers) {
    let text = window ? part("conv", { window }) : part(mixes.startsWith("attention") ? "both" : "state");
    if (mixes === "attention") {
      text = part(chunked ? "chunk" : window ? "window" : "all", { window: window ?? 0 }) + part(rotates ? "rotates" : "still");
      if (!KINDS.includes(kind) && !strange.includes(kind)) strange.push(kind);
    }
    counted.set(text, (counted.get(text) ?? 0) + 1);
  }
  const kinds = [...counted].map(([text, times]) => `${times} × ${text}`).join(part("between"));
  add("layers", "note", fill("layers", strange.length ? "unknown" : "note", { kinds, names: strange.join(", ") }));
  if (found.local) add("design", "note", fill("design", "note", { window: found.window ?? 0 }));
  add("difference", "note", fill("difference", found.kind === "diffllama" ? "has" : "note"));
  return made;
}

/** One sentence with the names of what breaks. */
export function short(made, tokens, language = "en") {
  const names = [...new Set(made.filter(({ state }) => state === "breaks").map(({ name }) => name))];
  return filled(shipped.sentences.short[names.length ? "breaks" : "holds"][language], { n: tokens, count: names.length, names: names.join(language === "zh" ? "、" : ", ") });
}

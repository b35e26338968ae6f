import { box, circle, clamp, curve, line, mount, path, place, say, scale, text } from "./kit.js";
import { left } from "./mathematics.js";

// the noise of the first map, and a wave as large that is orthogonal to it: the same sines, a quarter of a turn on
const SINES = [[3, 0.4, 1], [7, 2.1, 0.8], [12, 5.0, 0.7], [19, 1.2, 0.45]];
const POINTS = 240;
const wave = (quarter) => Array.from({ length: POINTS }, (_, k) => SINES.reduce((sum, [f, phase, size]) => sum + size * Math.sin((2 * Math.PI * f * k) / POINTS + phase + quarter), 0) / 1.55);
const [FIRST, ACROSS] = [wave(0), wave(Math.PI / 2)];

const mean = (list) => list.reduce((sum, x) => sum + x, 0) / list.length;
/** Who has learned a task; without one, all. */
const entries = (data, task) => Object.keys(task ? data.scores[task] : Object.assign({}, ...Object.values(data.scores ?? {})));
/** The mean score of an entry at a length between the measured ones, on the straight line through its neighbours. */
const scored = (data, task, name, at) => {
  const means = data.scores[task][name].map(mean);
  const k = Math.min(Math.floor(at), means.length - 2);
  return means[k] + (means[k + 1] - means[k]) * (at - k);
};

const layout = (w) => {
  const wide = w >= 560;
  const vectors = { x: 26, y: wide ? 170 : 150, unit: wide ? 122 : 104 };
  const waves = wide ? { x: 320, y: 26, w: w - 330, h: 250 } : { x: 6, y: 318, w: w - 12, h: 240 };
  const plot = wide ? { x: 44, y: 30, w: 0.52 * w - 44, h: 240 } : { x: 38, y: 26, w: w - 56, h: 200 };
  const board = wide ? { x: 0.52 * w + 40, y: 22, w: 0.48 * w - 44, step: 19.5 } : { x: 4, y: 282, w: w - 8, step: 21 };
  return { wide, vectors, waves, plot, board, height: wide ? 312 : 590 };
};

const tip = (s, vectors) => {
  const [length, angle] = [vectors.unit * s.lambda * s.ratio, Math.acos(s.agreement)];
  return [vectors.x + length * Math.cos(angle), vectors.y - length * Math.sin(angle)];
};

const drawWaves = (s, w) => {
  const { vectors, waves } = layout(w);
  const size = left(s.agreement, s.lambda, s.ratio);
  const good = size < 1;
  const [tx, ty] = tip(s, vectors);
  const ax = vectors.x + vectors.unit;
  const head = (x, y, dx, dy, name) => {
    const l = Math.hypot(dx, dy) || 1;
    const [ux, uy] = [dx / l, dy / l];
    return path(`M${place(x)} ${place(y)}L${place(x - 11 * ux - 5 * uy)} ${place(y - 11 * uy + 5 * ux)}L${place(x - 11 * ux + 5 * uy)} ${place(y - 11 * uy - 5 * ux)}Z`, name);
  };
  const second = FIRST.map((a, k) => s.ratio * (s.agreement * a + Math.sqrt(1 - s.agreement ** 2) * ACROSS[k]));
  const rest = FIRST.map((a, k) => a - s.lambda * second[k]);
  const x = (k) => waves.x + (k / (POINTS - 1)) * waves.w;
  const trace = (values, y, name, part) => curve(values.map((v, k) => [x(k), y - 27 * v]), name, part);
  const [top, bottom] = [waves.y + 68, waves.y + 196];
  return [
    circle(ax, vectors.y, vectors.unit, good ? "fgreen wash" : "forange wash", "circle"), circle(ax, vectors.y, vectors.unit, "grey dash", "circle"),
    `<g data-part="first">${line(vectors.x, vectors.y, ax, vectors.y, "blue thick")}${head(ax, vectors.y, 1, 0, "fblue")}</g>`,
    `<g data-part="second">${line(vectors.x, vectors.y, tx, ty, "orange thick")}</g>`,
    `<g data-part="rest">${line(tx, ty, ax, vectors.y, "ink thick")}</g>`,
    text(vectors.x + vectors.unit * 0.5, vectors.y + 24, "first noise", "small mid", "first"),
    text(ax, vectors.y + vectors.unit - 16, "in here it helps", "small mid quiet", "circle"),
    text(ax, vectors.y - vectors.unit - 8, `left: ${size.toFixed(2)} of the first`, "mid bold", "rest"),
    text(waves.x, waves.y + 8, "first noise, and λ × second", "small quiet"), line(waves.x, top, waves.x + waves.w, top, "faint"),
    trace(FIRST, top, "blue", "first"), trace(second.map((v) => s.lambda * v), top, "orange", "second"),
    text(waves.x, waves.y + 136, "what is left", "small quiet"),
    path(`M${FIRST.map((v, k) => `${place(x(k))} ${place(bottom - 27 * v)}`).join("L")}L${place(waves.x + waves.w)} ${bottom}L${waves.x} ${bottom}Z`, "fblue wash", "first"),
    line(waves.x, bottom, waves.x + waves.w, bottom, "faint"), trace(rest, bottom, "ink", "rest"),
  ].join("");
};

const drawRace = (s, data, w) => {
  const { plot, board } = layout(w);
  const names = entries(data, s.task);
  const at = s.bet ? s.run : 0;
  const [x, y] = [scale([0, data.lengths.length - 1], [plot.x, plot.x + plot.w]), scale([0, 1], [plot.y + plot.h, plot.y])];
  const now = Object.fromEntries(names.map((name) => [name, scored(data, s.task, name, at)]));
  const ranks = [...names].sort((a, b) => now[b] - now[a]);
  const run = (name) => {
    const means = data.scores[s.task][name].map(mean);
    return [...means.slice(0, Math.floor(at) + 1).map((v, k) => [x(k), y(v)]), [x(at), y(now[name])]];
  };
  const back = [0, 0.5, 1].map((v) => line(plot.x, y(v), plot.x + plot.w, y(v), "faint") + text(plot.x - 8, y(v) + 5, v, "small end quiet"));
  const lengths = data.lengths.map((n, k) => text(x(k), plot.y + plot.h + 20, n, "small mid quiet"));
  const seeds = s.bet ? data.scores[s.task][s.bet].flatMap((row, k) => (k <= at ? row.map((v) => circle(x(k), y(v), 3, "forange half", "bet")) : [])) : [];
  const rows = names.map((name) => {
    const top = board.y + ranks.indexOf(name) * board.step;
    const own = name === s.bet;
    return `${box(board.x + 178, top - 10, (board.w - 178) * now[name], 12, own ? "forange" : name === "RoPE" ? "fblue" : "ffaint", own ? "bet" : "board")}${text(board.x + 170, top, name, `small end ${own ? "bold" : ""}`, own ? "bet" : "board")}`;
  });
  return [
    ...back, ...lengths, text(plot.x, plot.y - 12, "share of right answers", "small quiet"), text(plot.x + plot.w, plot.y + plot.h + 38, "length (trained up to 16)", "small end quiet"),
    ...names.filter((name) => name !== s.bet).map((name) => curve(run(name), name === "RoPE" ? "blue" : "faint", "board")), ...seeds,
    s.bet ? curve(run(s.bet), "orange thick", "bet") : text(plot.x + plot.w / 2, plot.y + plot.h / 2, "lay your bet first", "mid bold"), ...rows,
  ].join("");
};

export const render = mount({
  name: "waves",
  words: { "first noise": "first", "second noise": "second", circle: "circle", "what is left": "rest" },
  start: () => ({ view: "waves", agreement: 0.3, ratio: 1, lambda: 0.8, task: "retrieval", bet: "", run: 0 }),
  tidy: (s, data) => ({
    view: s.view === "race" ? "race" : "waves", agreement: clamp(s.agreement, 0, 1), ratio: clamp(s.ratio, 0.2, 2), lambda: clamp(s.lambda, 0, 1.2),
    task: s.task in data.tasks ? s.task : "retrieval", bet: entries(data, s.task in data.tasks ? s.task : "retrieval").includes(s.bet) ? s.bet : "", run: clamp(s.run, 0, data.lengths.length - 1),
  }),
  controls: (data) => [
    { kind: "choice", key: "view", label: "show", options: [["waves", "two noises"], ["race", "the race"]] },
    { key: "agreement", label: "agreement (cosine)", min: 0, max: 1, step: 0.01, show: (x) => x.toFixed(2), hidden: (s) => s.view === "race" },
    { key: "ratio", label: "size of the second", min: 0.2, max: 2, step: 0.05, show: (x) => x.toFixed(2), hidden: (s) => s.view === "race" },
    { key: "lambda", label: "λ", min: 0, max: 1.2, step: 0.01, show: (x) => x.toFixed(2), hidden: (s) => s.view === "race" },
    { kind: "button", label: "Best λ", press: (s) => ({ lambda: s.agreement / s.ratio }), hidden: (s) => s.view === "race" },
    { kind: "choice", key: "task", label: "task", options: Object.entries(data.tasks ?? {}), pick: (task) => ({ task, run: 0 }), hidden: (s) => s.view !== "race" },
    { kind: "choice", key: "bet", label: "your bet", options: [["", "choose"], ...entries(data).map((name) => [name, name])], pick: (bet) => ({ bet, run: 0 }), hidden: (s) => s.view !== "race" },
    { kind: "play", label: "Let the length grow", restart: { run: 0 }, off: (s) => !s.bet, step: (s, seconds, held) => (!s.bet || s.run >= held.lengths.length - 1 ? null : { run: s.run + 0.6 * seconds }), hidden: (s) => s.view !== "race" },
    { key: "run", label: "length", min: 0, max: data.lengths.length - 1, step: 0.05, show: (x) => say(data.lengths[0] * 2 ** x, 3), hidden: (s) => s.view !== "race" || !s.bet },
  ],
  height: (w) => layout(w).height,
  items: (s, data, w) => {
    const { vectors, board } = layout(w);
    if (s.view === "race") {
      const names = entries(data, s.task);
      const at = s.bet ? s.run : 0;
      const ranks = [...names].sort((a, b) => scored(data, s.task, b, at) - scored(data, s.task, a, at));
      return names.map((name, k) => ({ id: `row${k}`, area: [board.x, board.y - 14 + ranks.indexOf(name) * board.step, board.w, board.step], quiet: true, press: () => ({ bet: name, run: 0 }), part: "board" }));
    }
    const [x, y] = tip(s, vectors);
    return [{
      id: "tip", x, y, look: "orange", label: "λ times the second noise, as an arrow: arrows change its size, Page Up and Down its agreement",
      range: [Math.round(100 * s.lambda), 0, 120], value: `λ ${s.lambda.toFixed(2)}, agreement ${s.agreement.toFixed(2)}`, part: "second",
      drag: (px, py, now) => {
        const [dx, dy] = [Math.max(0, px - vectors.x), Math.max(0, vectors.y - py)];
        const length = Math.hypot(dx, dy);
        return { agreement: length < 4 ? now.agreement : dx / length, lambda: clamp(length / vectors.unit / now.ratio, 0, 1.2) };
      },
      key: (step, now) => (Math.abs(step) === 10 ? { agreement: clamp(now.agreement + step / 200, 0, 1) } : { lambda: clamp(now.lambda + step / 50, 0, 1.2) }),
    }];
  },
  picture: (s, data, w) => (s.view === "race" ? drawRace(s, data, w) : drawWaves(s, w)),
  sentence: (s, data) => {
    if (s.view === "waves") {
      const size = left(s.agreement, s.lambda, s.ratio);
      const need = (s.lambda * s.ratio) / 2;
      const what = `${Math.abs(size - 1) < 0.005 ? "The noise stays as large as it was" : size < 1 ? `${say(100 * (1 - size), 2)} % of the noise goes` : `The noise grows by ${say(100 * (size - 1), 2)} %`}.`;
      return `${what} With this λ and these sizes the two must agree by more than ${need.toFixed(2)} for a gain; they agree by ${s.agreement.toFixed(2)}.`;
    }
    if (!s.bet) return `${entries(data, s.task).length} small decoders that have learned ${data.tasks[s.task]}: which is right most often at ${data.lengths.at(-1)} tokens, eight times what it was trained on? Lay your bet.`;
    const done = s.run >= data.lengths.length - 1;
    const ranks = entries(data, s.task).sort((a, b) => scored(data, s.task, b, s.run) - scored(data, s.task, a, s.run));
    const own = scored(data, s.task, s.bet, s.run);
    const lead = scored(data, s.task, ranks[0], s.run);
    const n = Math.round(data.lengths[0] * 2 ** s.run);
    const above = ranks.filter((name) => scored(data, s.task, name, s.run) > own).length;
    if (!done) return `At ${n} tokens ${s.bet} is right in ${say(100 * own, 3)} %; ${above} of ${ranks.length} are ahead of it.`;
    return `At ${n} tokens your ${s.bet} is right in ${say(100 * own, 3)} % (mean of its runs, the dots), ${above ? `behind ${above} of the ${ranks.length}; ${ranks[0]} leads with ${say(100 * lead, 3)} %` : "and nothing is ahead of it"}.${s.bet === "RoPE" ? "" : ` RoPE has ${say(100 * scored(data, s.task, "RoPE", s.run), 3)} %.`}`;
  },
});
export default { render };

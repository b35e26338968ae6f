import { box, circle, clamp, curve, line, mount, path, place, say, scale, text } from "./kit.js";
import { noiseLeft } from "./mathematics.js";

// the noise of the first map, and a wave as large that is orthogonal to it: the same sines, a quarter of a turn on
const SINES = [[3, 0.4, 1], [7, 2.1, 0.8], [12, 5.0, 0.7], [19, 1.2, 0.45]];
const POINTS = 240;
const wave = (quarter) =>
  Array.from(
    { length: POINTS },
    (_, k) =>
      SINES.reduce(
        (sum, [f, phase, size]) => sum + size * Math.sin((2 * Math.PI * f * k) / POINTS + phase + quarter),
        0,
      ) / 1.55,
  );
const [FIRST, ACROSS] = [wave(0), wave(Math.PI / 2)];

const MOST = 1.2; // of λ
// what each remedy of the race changes, in a clause
const REMEDY = {
  RoPE: "queries and keys turn with the position",
  "RoPE, half the heads": "RoPE with half as many heads, what the differential one is compared with",
  "p-RoPE": "RoPE, whose slowest pairs do not turn",
  "larger base": "RoPE with slower clocks, of base 500 000",
  ALiBi: "no rotation, but a logit that falls with the distance",
  NoPE: "no position encoding at all, only the causal mask",
  "sliding window": "a window of 8 tokens in every second layer",
  "local RoPE, global NoPE + scalable softmax": "the same, and scalable softmax in the layers without positions",
  "NoPE, stick-breaking": "no positions: each key gets a share of what the nearer ones have left",
  "local RoPE, global NoPE": "RoPE in a window of 8 tokens in every second layer, no positions in the others",
  separators: "a token that says nothing is put in after every four",
  "top 8 keys": "each token hears only the 8 keys of the largest logits",
  "selective attention": "a token can tell the later ones to ignore another",
  "scalable softmax": "logits times the logarithm of the length, so that longer texts are not flatter",
  "sparse (entmax 1.5)": "in place of softmax a map that gives small logits exactly 0",
  differential: "the difference of two attention maps, as in the first view",
  "differential, version 2": "the difference of two maps, with as many heads as RoPE",
  "off-by-one softmax": "a 1 more in the denominator of softmax, so that a head can hear nothing",
  "gated attention": "a gate behind each head, which can shut it",
};

const short = (name) =>
  name.replace("local RoPE, global NoPE", "local / global").replace(" + scalable softmax", ", scaled");
const mean = (list) => list.reduce((sum, x) => sum + x, 0) / list.length;
/** Who has learned a task; without one, all. */
const entries = (data, task) =>
  Object.keys(task ? data.scores[task] : Object.assign({}, ...Object.values(data.scores ?? {})));
/** The mean score of an entry at a length between the measured ones, on the straight line through its neighbours. */
const scored = (data, task, name, at) => {
  const means = data.scores[task][name].map(mean);
  const k = Math.min(Math.floor(at), means.length - 2);
  return means[k] + (means[k + 1] - means[k]) * (at - k);
};

/** The length at a place of the race: a measured one, or between which two. */
const measured = (data, at) => {
  const low = Math.floor(at + 1e-6);
  return Math.abs(at - Math.round(at)) < 1e-6
    ? `${data.lengths[Math.round(at)]}`
    : `${data.lengths[low]} to ${data.lengths[low + 1]}`;
};

const layout = (w) => {
  const wide = w >= 560;
  const vectors = { x: 26, y: wide ? 170 : 150, base: wide ? 116 : 102 };
  const waves = wide ? { x: 320, y: 26, w: w - 330, h: 250 } : { x: 6, y: 318, w: w - 12, h: 240 };
  const plot = wide ? { x: 44, y: 30, w: 0.52 * w - 44, h: 240 } : { x: 38, y: 26, w: w - 56, h: 200 };
  const board = wide ? { x: 0.52 * w + 40, y: 22, w: 0.48 * w - 44, step: 19.5 } : { x: 4, y: 282, w: w - 8, step: 21 };
  return { wide, vectors, waves, plot, board, height: wide ? 312 : 590 };
};

/** How long the first noise is drawn: shorter for a large second one, so that its tip stays in the frame at every λ. */
const unit = (s, vectors) => vectors.base / Math.max(1, s.ratio);
const tip = (s, vectors) => {
  const [length, angle] = [unit(s, vectors) * s.lambda * s.ratio, Math.acos(s.agreement)];
  return [vectors.x + length * Math.cos(angle), vectors.y - length * Math.sin(angle)];
};

const drawWaves = (s, w) => {
  const { vectors, waves } = layout(w);
  const size = noiseLeft(s.agreement, s.lambda, s.ratio);
  const good = size < 1;
  const [tx, ty] = tip(s, vectors);
  const one = unit(s, vectors);
  const ax = vectors.x + one;
  const head = (x, y, dx, dy, name) => {
    const l = Math.hypot(dx, dy) || 1;
    const [ux, uy] = [dx / l, dy / l];
    return path(
      `M${place(x)} ${place(y)}L${place(x - 11 * ux - 5 * uy)} ${place(y - 11 * uy + 5 * ux)}L${place(x - 11 * ux + 5 * uy)} ${place(y - 11 * uy - 5 * ux)}Z`,
      name,
    );
  };
  const second = FIRST.map((a, k) => s.ratio * (s.agreement * a + Math.sqrt(1 - s.agreement ** 2) * ACROSS[k]));
  const rest = FIRST.map((a, k) => a - s.lambda * second[k]);
  const x = (k) => waves.x + (k / (POINTS - 1)) * waves.w;
  const peak = Math.max(...[FIRST, second.map((v) => s.lambda * v), rest].flat().map(Math.abs));
  const high = Math.min(27, 50 / peak); // all three curves on one scale, inside the frame
  const trace = (values, y, name, part) => curve(values.map((v, k) => [x(k), y - high * v]), name, part);
  const [top, bottom] = [waves.y + 68, waves.y + 196];
  const small = one < 90;
  return [
    circle(ax, vectors.y, one, "fgreen wash", "circle"), circle(ax, vectors.y, one, "green thin dash", "circle"),
    `<g data-part="first">${line(vectors.x, vectors.y, ax, vectors.y, "blue thick")}${head(ax, vectors.y, 1, 0, "fblue")}</g>`,
    `<g data-part="second">${line(vectors.x, vectors.y, tx, ty, "orange thick")}</g>`,
    `<g data-part="rest">${line(tx, ty, ax, vectors.y, "ink thick")}</g>`,
    text(vectors.x + Math.max(36, one * 0.5), vectors.y + 24, "first noise", "small mid halo", "first"),
    text(
      small ? vectors.x + 70 : ax,
      small ? vectors.y + one + 20 : vectors.y + one - 16,
      "in here it helps",
      "small mid help",
      "circle",
    ),
    text(
      vectors.x - 20,
      14,
      `left: ${size.toFixed(2)} of the first`,
      `bold halo ${good ? "help" : ""}`,
      "rest",
    ),
    text(waves.x, waves.y + 8, "first noise, and λ × second", "small quiet"),
    line(waves.x, top, waves.x + waves.w, top, "faint"),
    trace(FIRST, top, "blue", "first"),
    trace(
      second.map((v) => s.lambda * v),
      top,
      "orange",
      "second",
    ),
    text(waves.x, waves.y + 136, "what is left", "small quiet"),
    path(
      `M${FIRST.map((v, k) => `${place(x(k))} ${place(bottom - high * v)}`).join("L")}L${place(waves.x + waves.w)} ${bottom}L${waves.x} ${bottom}Z`,
      "fblue wash",
      "first",
    ),
    line(waves.x, bottom, waves.x + waves.w, bottom, "faint"),
    trace(rest, bottom, "ink", "rest"),
  ].join("");
};

const drawRace = (s, data, w) => {
  const { plot, board } = layout(w);
  const names = entries(data, s.task);
  const at = s.bet ? s.run : 0;
  const [x, y] = [
    scale([0, data.lengths.length - 1], [plot.x, plot.x + plot.w]),
    scale([0, 1], [plot.y + plot.h, plot.y]),
  ];
  const now = Object.fromEntries(names.map((name) => [name, scored(data, s.task, name, at)]));
  const ranks = [...names].sort((a, b) => now[b] - now[a]);
  const run = (name) => {
    const means = data.scores[s.task][name].map(mean);
    return [...means.slice(0, Math.floor(at) + 1).map((v, k) => [x(k), y(v)]), [x(at), y(now[name])]];
  };
  const back = [0, 0.5, 1].map(
    (v) =>
      line(plot.x, y(v), plot.x + plot.w, y(v), "faint") + text(plot.x - 8, y(v) + 5, v, "small end quiet"),
  );
  const lengths = data.lengths.map((n, k) => text(x(k), plot.y + plot.h + 20, n, "small mid quiet"));
  const seeds = s.bet
    ? data.scores[s.task][s.bet].flatMap((row, k) =>
        k <= at ? row.map((v) => circle(x(k), y(v), 3, "forange half", "bet")) : [],
      )
    : [];
  const rows = names.map((name) => {
    const top = board.y + ranks.indexOf(name) * board.step;
    const own = name === s.bet;
    return `${box(board.x + 178, top - 10, (board.w - 178) * now[name], 12, own ? "forange" : name === "RoPE" ? "fblue" : "ffaint", own ? "bet" : "board")}${text(board.x + 170, top, short(name), `small end ${own ? "bold" : ""}`, own ? "bet" : "board")}`;
  });
  return [
    ...back,
    ...lengths,
    text(plot.x, plot.y - 12, "share of right answers", "small quiet"),
    text(plot.x + plot.w, plot.y + plot.h + 38, "length (trained up to 16)", "small end quiet"),
    ...names
      .filter((name) => name !== s.bet)
      .map((name) => curve(run(name), name === "RoPE" ? "blue" : "faint", "board")),
    ...seeds,
    s.bet
      ? curve(run(s.bet), "orange thick", "bet")
      : text(plot.x + plot.w / 2, plot.y + plot.h / 2, "lay your bet first", "mid bold", "waits"),
    ...rows,
  ].join("");
};

export const render = mount({
  name: "waves",
  when: (s) => [s.view],
  words: { "first noise": "first", "second noise": "second", circle: "circle", "what is left": "rest" },
  start: () => ({ view: "waves", agreement: 0.3, ratio: 1, lambda: 0.8, task: "retrieval", bet: "", run: 0 }),
  tidy: (s, data) => ({
    view: s.view === "race" ? "race" : "waves",
    agreement: clamp(s.agreement, 0, 1),
    ratio: clamp(s.ratio, 0.2, 2),
    lambda: clamp(s.lambda, 0, MOST),
    task: s.task in data.tasks ? s.task : "retrieval",
    bet: entries(data, s.task in data.tasks ? s.task : "retrieval").includes(s.bet) ? s.bet : "",
    run: clamp(s.run, 0, data.lengths.length - 1),
  }),
  controls: (data) => [
    {
      kind: "choice",
      key: "view",
      label: "show",
      options: [
        ["waves", "two noises"],
        ["race", "the race"],
      ],
      hidden: (s) => s.view !== "race",
    },
    {
      key: "agreement",
      label: "agreement (cosine)",
      min: 0,
      max: 1,
      step: 0.01,
      show: (x) => x.toFixed(2),
      hidden: (s) => s.view === "race",
    },
    {
      key: "ratio",
      label: "size of the second",
      min: 0.2,
      max: 2,
      step: 0.05,
      show: (x) => x.toFixed(2),
      hidden: (s) => s.view === "race",
    },
    {
      key: "lambda",
      label: "λ",
      min: 0,
      max: MOST,
      step: 0.01,
      show: (x) => x.toFixed(2),
      hidden: (s) => s.view === "race",
    },
    {
      kind: "button",
      label: (s) => (s.agreement / s.ratio > MOST ? `Best λ, up to ${MOST.toFixed(2)}` : "Best λ"),
      press: (s) => ({ lambda: Math.min(MOST, s.agreement / s.ratio) }),
      hidden: (s) => s.view === "race",
    },
    {
      kind: "choice",
      key: "task",
      label: "task",
      options: Object.entries(data.tasks ?? {}),
      pick: (task) => ({ task }),
      hidden: (s) => s.view !== "race",
    },
    {
      kind: "choice",
      key: "bet",
      label: "your bet",
      options: [["", "choose"], ...entries(data).map((name) => [name, name])],
      pick: (bet) => ({ bet }),
      hidden: (s) => s.view !== "race",
    },
    {
      kind: "play",
      label: "Let the length grow",
      restart: { run: 0 },
      off: (s) => !s.bet,
      step: (s, seconds, held) =>
        !s.bet || s.run >= held.lengths.length - 1 ? null : { run: s.run + 0.6 * seconds },
      hidden: (s) => s.view !== "race",
    },
    {
      key: "run",
      label: "length",
      min: 0,
      max: data.lengths.length - 1,
      show: (x) => measured(data, x),
      hidden: (s) => s.view !== "race" || !s.bet,
    },
  ],
  height: (w) => layout(w).height,
  items: (s, data, w) => {
    const { vectors, board } = layout(w);
    if (s.view === "race") {
      const names = entries(data, s.task);
      const at = s.bet ? s.run : 0;
      const ranks = [...names].sort((a, b) => scored(data, s.task, b, at) - scored(data, s.task, a, at));
      return names.map((name, k) => ({
        id: `row${k}`,
        area: [board.x, board.y - 14 + ranks.indexOf(name) * board.step, board.w, board.step],
        quiet: true,
        title: REMEDY[name],
        press: () => ({ bet: name }),
        part: "board",
      }));
    }
    const [x, y] = tip(s, vectors);
    return [
      {
        id: "tip",
        x,
        y,
        look: "orange",
        label:
          "λ times the second noise, as an arrow: arrows change its size, Page Up and Down its agreement",
        range: [Math.round(100 * s.lambda), 0, 100 * MOST],
        value: `λ ${s.lambda.toFixed(2)}, agreement ${s.agreement.toFixed(2)}`,
        part: "second",
      drag: (px, py, now) => {
        const [dx, dy] = [Math.max(0, px - vectors.x), Math.max(0, vectors.y - py)];
        const length = Math.hypot(dx, dy);
          return {
            agreement: length < 4 ? now.agreement : dx / length,
            lambda: clamp(length / unit(now, vectors) / now.ratio, 0, MOST),
          };
      },
        key: (step, now) =>
          Math.abs(step) === 10
            ? { agreement: clamp(now.agreement + step / 200, 0, 1) }
            : { lambda: clamp(now.lambda + step / 50, 0, MOST) },
      },
    ];
  },
  picture: (s, data, w) => (s.view === "race" ? drawRace(s, data, w) : drawWaves(s, w)),
  sentence: (s, data) => {
    if (s.view === "waves") {
      const size = noiseLeft(s.agreement, s.lambda, s.ratio);
      const need = (s.lambda * s.ratio) / 2;
      const what = `${Math.abs(size - 1) < 0.005 ? "The noise stays as large as it was" : size < 1 ? `${say(100 * (1 - size), 2)}% of the noise goes` : `The noise grows by ${say(100 * (size - 1), 2)}%`}.`;
      if (s.lambda < 0.005) return "With λ = 0 nothing is subtracted: the noise stays as it was.";
      const best = s.agreement / s.ratio;
      const beyond =
        best > MOST ? ` The best λ would be ${best.toFixed(2)}, above what this slider has.` : "";
      if (need >= 1)
        return `${what} With this λ and these sizes no agreement is enough for a gain: a cosine is at most 1, and it would have to be above ${need.toFixed(2)}.${beyond}`;
      return `${what} With this λ and these sizes the two must agree by more than ${need.toFixed(2)} for a gain; they agree by ${s.agreement.toFixed(2)}.${beyond}`;
    }
    if (!s.bet)
      return `${entries(data, s.task).length} small decoders that have learned ${data.tasks[s.task]}: which is right most often at ${data.lengths.at(-1)} tokens, eight times what it was trained on? Lay your bet.`;
    const done = s.run >= data.lengths.length - 1;
    const ranks = entries(data, s.task).sort((a, b) => scored(data, s.task, b, s.run) - scored(data, s.task, a, s.run));
    const own = scored(data, s.task, s.bet, s.run);
    const lead = scored(data, s.task, ranks[0], s.run);
    const about = REMEDY[s.bet] ? ` ${s.bet}: ${REMEDY[s.bet]}.` : "";
    const above = ranks.filter((name) => scored(data, s.task, name, s.run) > own).length;
    const on = Math.abs(s.run - Math.round(s.run)) < 1e-6;
    const where = on
      ? `At ${measured(data, s.run)} tokens`
      : `On a straight line between the measured lengths, ${measured(data, s.run).replace("to", "and")},`;
    if (!done)
      return `${where} ${s.bet} is right in ${say(100 * own, 3)}%; ${above} of ${ranks.length} ${above === 1 ? "is" : "are"} ahead of it.${about}`;
    return `${where} your ${s.bet} is right in ${say(100 * own, 3)}% (mean of its runs, the dots), ${above ? `behind ${above} of the ${ranks.length}; ${ranks[0]} leads with ${say(100 * lead, 3)}%` : "and nothing is ahead of it"}.${s.bet === "RoPE" ? "" : ` RoPE has ${say(100 * scored(data, s.task, "RoPE", s.run), 3)}%.`}${about}`;
  },
});
export default { render };

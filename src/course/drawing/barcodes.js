import { clamp, curve, line, many, mount, path, place, say, scale, text } from "./kit.js";

const SHADES = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz+-";
const key = (s, data, k = s.at) => `${s.tokens} ${s.type} ${s.window ? 32 : 0} ${data.lengths[Math.round(k)]}`;
const pair = (s, data, k) => data.pairs[key(s, data, k)];
/** Whether each number of the two states is the same, to the bit. */
const equal = (held) =>
  [...held.equal].flatMap((digit) => [8, 4, 2, 1].map((bit) => (parseInt(digit, 16) & bit ? 1 : 0)));
const count = (held) => equal(held).reduce((sum, x) => sum + x, 0);
const shade = (c) => (SHADES.indexOf(c) - 31.5) / 31.5;

const layout = (w) => {
  const wide = w >= 560;
  const rows = wide ? 4 : 8;
  const codes = { x: 34, y: 26, w: (wide ? 0.62 * w : w - 4) - 34, rows, step: wide ? 66 : 48 };
  const plot = wide
    ? { x: 0.62 * w + 66, y: 36, w: 0.38 * w - 84, h: 210 }
    : { x: 52, y: codes.y + rows * codes.step + 60, w: w - 66, h: 150 };
  return { wide, codes, plot, height: wide ? 316 : plot.y + plot.h + 46 };
};
const LOW = 1e-4;

export const render = mount({
  name: "barcodes",
  words: { barcodes: "codes", barcode: "codes", stripes: "codes", "black stripes": "same", distance: "distance" },
  start: () => ({ at: 10, tokens: "ones", type: "bf16", window: false }),
  tidy: (s, data) => ({
    at: clamp(s.at, 0, data.lengths.length - 1),
    tokens: s.tokens === "digits" ? "digits" : "ones",
    type: s.type === "fp32" ? "fp32" : "bf16",
    window: Boolean(s.window),
  }),
  controls: (data) => [
    {
      key: "at",
      label: "tokens n",
      min: 0,
      max: (data.lengths ?? [0]).length - 1,
      show: (x) => String(data.lengths[Math.round(x)]),
    },
    {
      kind: "play",
      label: "Read on",
      restart: { at: 0 },
      step: (s, seconds, held) => (s.at >= held.lengths.length - 1 ? null : { at: s.at + 1.5 * seconds }),
    },
    {
      kind: "choice",
      key: "tokens",
      label: "tokens",
      options: [
        ["ones", "1, 1, 1, …"],
        ["digits", "random digits"],
      ],
    },
    {
      kind: "choice",
      key: "type",
      label: "computed in",
      options: [
        ["fp32", "fp32"],
        ["bf16", "bf16"],
      ],
    },
    { kind: "switch", key: "window", label: "window of 32" },
    {
      kind: "button",
      label: "Show the collapse",
      press: (s, held) => ({ at: held.lengths.length - 1, tokens: "ones", type: "bf16", window: true }),
    },
  ],
  height: (w) => layout(w).height,
  items: (s, data, w) => {
    const { plot } = layout(w);
    const last = data.lengths.length - 1;
    const x = scale([0, Math.log2(data.lengths[last])], [plot.x, plot.x + plot.w]);
    const nearest = (px) => ({
      at: data.lengths.reduce(
        (best, n, k) =>
          Math.abs(x(Math.log2(n)) - px) < Math.abs(x(Math.log2(data.lengths[best])) - px) ? k : best,
        0,
      ),
    });
    const k = Math.round(s.at);
    const y = scale([Math.log10(LOW), 3], [plot.y + plot.h, plot.y]);
    return [
      { id: "plot", area: [plot.x - 8, plot.y, plot.w + 16, plot.h], flat: true, drag: nearest },
      {
        id: "here",
        x: x(Math.log2(data.lengths[k])),
        y: y(Math.log10(Math.max(LOW, pair(s, data).distance))),
        flat: true,
        look: "orange",
        part: "distance",
        label: "length on the curve of distances",
        range: [data.lengths[k], 1, data.lengths[last]],
        value: `${many(data.lengths[k], "token")}, distance ${say(pair(s, data).distance)}`,
        drag: nearest,
        key: (step, now) => ({ at: clamp(Math.round(now.at) + step, 0, last) }),
      },
    ];
  },
  picture: (s, data, w) => {
    const { codes, plot } = layout(w);
    const held = pair(s, data);
    const same = equal(held);
    const n = data.lengths[Math.round(s.at)];
    const each = held.n.length / codes.rows;
    const wide = codes.w / each;
    // a stripe is blue where its number is above 0, orange below, black where both states hold the same bits
    const layers = { fblue: ["", "", "", ""], forange: ["", "", "", ""], fink: ["", "", "", ""] };
    const half = (codes.step - 14) / 2;
    [held.n, held.more].forEach((state, which) => [...state].forEach((c, k) => {
      const [row, column] = [Math.floor(k / each), k % each];
      const value = shade(c);
      const d = `M${place(codes.x + column * wide)} ${place(codes.y + row * codes.step + which * (half + 1))}h${place(wide)}v${place(half)}h${-place(wide)}z`;
      if (same[k]) layers.fink[3] += d;
      else layers[value > 0 ? "fblue" : "forange"][Math.min(3, Math.floor(Math.abs(value) * 5))] += d;
      }),
    );
    const stripes = Object.entries(layers).flatMap(([colour, depths]) =>
      depths.map((d, k) =>
        d
          ? path(
              d,
              colour,
              colour === "fink" ? "same" : "codes",
              colour === "fink" ? "" : `style="opacity:${[0.1, 0.35, 0.65, 1][k]}"`,
            )
          : "",
      ),
    );
    const x = scale([0, Math.log2(data.lengths.at(-1))], [plot.x, plot.x + plot.w]);
    const y = scale([Math.log10(LOW), 3], [plot.y + plot.h, plot.y]);
    const trace = (state) =>
      data.lengths.map((m, k) => [
        x(Math.log2(m)),
        y(Math.log10(Math.max(LOW, pair(state, data, k).distance))),
      ]);
    const other = { ...s, tokens: s.tokens === "ones" ? "digits" : "ones" };
    return [
      text(codes.x, codes.y - 9, `last state after ${n}; under it, after ${n + 1}`, "small quiet"),
      ...stripes,
      ...Array.from({ length: codes.rows }, (_, row) =>
        [0, 1]
          .map((which) =>
            text(
              codes.x - 5,
              codes.y + row * codes.step + which * (half + 1) + half / 2 + 5,
              n + which,
              "small end quiet",
            ),
          )
          .join(""),
      ),
      text(
        codes.x,
        codes.y + codes.rows * codes.step + 8,
        `${count(held)} of ${held.n.length} stripes are identical bit for bit`,
        "bold",
        "same",
      ),
      ...[-4, -2, 0, 2].map(
        (v) =>
          line(plot.x, y(v), plot.x + plot.w, y(v), "faint") +
          text(plot.x - 7, y(v) + 5, v === -4 ? "≤10⁻⁴" : say(10 ** v), "small end quiet"),
      ),
      ...[1, 8, 64, 512].map((m) => text(x(Math.log2(m)), plot.y + plot.h + 19, m, "small mid quiet")),
      text(plot.x + plot.w, plot.y + plot.h + 38, "tokens n", "small end quiet"),
      text(plot.x - 40, plot.y - 16, "distance of the two (L1)", "small quiet", "distance"),
      curve(trace(other), "grey thin dash"),
      curve(trace(s), "blue", "distance"),
      line(x(Math.log2(n)), plot.y, x(Math.log2(n)), plot.y + plot.h, "orange thin dash"),
      text(plot.x + plot.w, trace(other).at(-1)[1] - 9, other.tokens, "small end halo"),
    ].join("");
  },
  sentence: (s, data) => {
    const held = pair(s, data);
    const n = data.lengths[Math.round(s.at)];
    const same = count(held);
    if (same === held.n.length)
      return `The first token and ${many(n, "one")}, or ${n + 1}: all ${same} numbers of the last state are identical bit for bit, so the next token's probabilities are the same.`;
    const what =
      s.tokens === "ones"
        ? `The first token and ${many(n, "one")}, or ${n + 1}`
        : `The first token and ${many(n, "random digit")}, or the same with the last digit repeated`;
    return `${what}: the two last states are ${say(held.distance)} apart, and ${same} of ${held.n.length} numbers are identical bit for bit.`;
  },
});
export default { render };

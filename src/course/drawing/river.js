import { box, circle, clamp, line, many, mount, path, place, say, text } from "./kit.js";
import { heard, influence, sink } from "./mathematics.js";

const N = 12;
const CELLS = Array.from({ length: N }, (_, i) => Array.from({ length: i + 1 }, (_, j) => [i, j])).flat();
const masked = (see) => CELLS.map(([i, j]) => (see(i, j) ? "1" : "0")).join("");
const MASKS = {
  causal: ["causal: all before", masked(() => true)],
  window: ["a window of 3", masked((i, j) => i - j < 3)],
  previous: ["the one before", masked((i, j) => i - j < 2)],
  blocks: ["blocks of 4", masked((i, j) => Math.floor(i / 4) === Math.floor(j / 4))],
  stride: ["every third", masked((i, j) => (i - j) % 3 === 0)],
};
const where = (i, j) => (i * (i + 1)) / 2 + j;
const square = (mask) =>
  Array.from({ length: N }, (_, i) =>
    Array.from({ length: N }, (_, j) => (j <= i ? Number(mask[where(i, j)] === "1") : 0)),
  );
let brush = "0"; // what the stroke under way paints
const FIRST_CELL = where(8, 3); // where the keyboard begins
const flow = (s) => influence(sink(square(s.mask), s.sink), Math.round(s.layers), s.residual);

const layout = (w) => {
  const wide = w >= 560;
  const river = { x: 26, y: 40, w: wide ? 0.64 * w - 26 : w - 40, h: wide ? 220 : 230 };
  const bars = { y: river.y + river.h + 40, h: 70 };
  const size = wide ? Math.min(18, (0.3 * w) / N) : 16;
  const grid = wide ? { x: w - N * size - 4, y: river.y } : { x: 60, y: bars.y + bars.h + 66 };
  const step = river.w / (N - 1);
  return {
    wide,
    river,
    bars,
    grid,
    size,
    x: (k) => river.x + k * step,
    height: wide ? bars.y + bars.h + 26 : grid.y + N * size + 56,
  };
};

export const render = mount({
  name: "river",
  words: {
    ink: "ink",
    river: "ink",
    "last token": "last",
    mask: "mask",
    sink: "first",
    "first token": "first",
  },
  start: () => ({
    token: 6,
    layers: 4,
    residual: 0,
    sink: 0,
    kind: "causal",
    mask: MASKS.causal[1],
    cell: -1,
    poured: 9,
  }),
  tidy: (s) => ({
    ...s,
    token: clamp(Math.round(s.token), 1, N),
    layers: clamp(Math.round(s.layers), 1, 8),
    residual: clamp(s.residual, 0, 0.95),
    sink: clamp(s.sink, 0, 0.95),
    mask: new RegExp(`^[01]{${CELLS.length}}$`).test(s.mask) ? s.mask : MASKS.causal[1],
    cell: clamp(Math.round(s.cell), -1, CELLS.length - 1),
  }),
  controls: () => [
    { key: "layers", label: "layers L", min: 1, max: 8 },
    { key: "residual", label: "share of the own state kept", min: 0, max: 0.95, step: 0.05, show: (x) => x.toFixed(2) },
    { key: "sink", label: "share for the sink", min: 0, max: 0.95, step: 0.05, show: (x) => x.toFixed(2) },
    {
      kind: "choice",
      key: "kind",
      label: "mask",
      options: [
        ...Object.entries(MASKS).map(([key, [label]]) => [key, label]),
        ["painted", "painted by hand"],
      ],
      pick: (kind, s) => ({ kind, mask: MASKS[kind]?.[1] ?? s.mask }),
    },
    {
      kind: "play",
      label: "Pour",
      restart: { poured: 0.01 },
      step: (s, seconds) =>
        s.poured >= 9
          ? null
          : { poured: s.poured + 1.6 * seconds >= s.layers ? 9 : s.poured + 1.6 * seconds },
    },
  ],
  height: (w) => layout(w).height,
  items: (s, data, w) => {
    const { river, bars, grid, size, x } = layout(w);
    const step = river.w / (N - 1);
    const nearest = (px) => ({ token: clamp(1 + Math.round((px - river.x) / step), 1, N), poured: 9 });
    const cell = (px, py) => [Math.floor((py - grid.y) / size), Math.floor((px - grid.x) / size)];
    const paint = (now, at, value) => ({
      mask: now.mask.slice(0, at) + value + now.mask.slice(at + 1),
      kind: "painted",
      cell: at,
      poured: 9,
    });
    const touched = s.cell >= 0;
    const [row, column] = CELLS[touched ? s.cell : FIRST_CELL];
    const seen = touched ? s.mask[s.cell] === "1" : null;
    return [
      { id: "columns", area: [river.x - step / 2, 0, river.w + step, bars.y + bars.h + 20], flat: true, drag: (px) => nearest(px) },
      {
        id: "token", x: x(s.token - 1), y: river.y, r: 17, look: "orange", knob: 9, flat: true, label: "token whose ink is followed", part: "ink",
        range: [s.token, 1, N], value: `token ${s.token}`, drag: (px) => nearest(px), key: (by, now) => ({ token: clamp(now.token + by, 1, N), poured: 9 }),
      },
      {
        id: "mask", area: [grid.x, grid.y, N * size, N * size], role: "button", pressed: seen, part: "mask",
        label: !touched ? "Mask: arrows choose a cell, Enter paints it" : row === column ? `Mask: token ${row + 1} sees itself, always` : `Mask: token ${row + 1} ${seen ? "sees" : "does not see"} token ${column + 1}. Arrows move, Enter paints`,
        drag: (px, py, now, _, first) => {
          const [i, j] = cell(px, py);
          if (!(j >= 0 && j < i && i < N)) return null;
          const at = where(i, j);
          if (first) brush = now.mask[at] === "1" ? "0" : "1";
          return paint(now, at, brush);
        },
        key: (by, now, _, key) => {
          if (now.cell < 0) return { cell: FIRST_CELL };
          const [i, j] = CELLS[now.cell];
          const next = {
            ArrowUp: [i - 1, j],
            ArrowDown: [i + 1, j],
            ArrowLeft: [i, j - 1],
            ArrowRight: [i, j + 1],
          }[key];
          if (!next || next[0] < 0 || next[0] >= N || next[1] < 0 || next[1] > next[0]) return null;
          return { cell: where(...next) };
        },
        enter: (now) => {
          if (now.cell < 0) return { cell: FIRST_CELL };
          const [i, j] = CELLS[now.cell];
          return i === j ? null : paint(now, now.cell, now.mask[now.cell] === "1" ? "0" : "1");
        },
      },
    ];
  },
  picture: (s, data, w) => {
    const { wide, river, bars, grid, size, x } = layout(w);
    const states = flow(s);
    const matrix = sink(square(s.mask), s.sink);
    const y = (layer) => river.y + (layer * river.h) / s.layers;
    const j0 = s.token - 1;
    const bend = (xa, ya, xb, yb) =>
      `M${place(xa)} ${place(ya)}C${place(xa)} ${place((ya + yb) / 2)} ${place(xb)} ${place((ya + yb) / 2)} ${place(xb)} ${place(yb)}`;
    let dry = "";
    const wet = [];
    for (let layer = 0; layer < s.layers; layer += 1) {
      const shown = clamp(s.poured - layer, 0, 1);
      for (let i = 0; i < N; i += 1) {
        for (let j = 0; j <= i; j += 1) {
          const weight = (1 - s.residual) * matrix[i][j] + (i === j ? s.residual : 0);
          if (weight === 0) continue;
          const d = bend(x(j), y(layer), x(i), y(layer + 1));
          dry += d;
          const carried = weight * states[layer][j][j0] * shown;
          if (carried > 0.004)
            wet.push(
              path(d, "orange", "ink", `style="stroke-width:${place(36 * carried) || 0.1};opacity:.62"`),
            );
        }
      }
    }
    const nodes = states.flatMap((rows, layer) =>
      rows.map((row, i) => {
        const share = layer === 0 || s.poured > layer - 0.5 ? row[j0] : 0;
        return (
          circle(x(i), y(layer), 3, "ffaint") +
          (share > 0.002 ? circle(x(i), y(layer), 2 + 11 * Math.sqrt(share), "forange", "ink") : "")
        );
      }),
    );
    const last = states.at(-1)[N - 1];
    const top = Math.max(...last);
    const tall = last.map((share, j) =>
      box(
        x(j) - 9,
        bars.y + bars.h - (bars.h * share) / top,
        18,
        (bars.h * share) / top,
        j === j0 ? "forange" : j === 0 && s.sink > 0 ? "fblue" : "fgrey",
        j === 0 ? "first" : "last",
      ),
    );
    const cells = CELLS.map(([i, j]) => {
      const on = s.mask[where(i, j)] === "1";
      return box(
        grid.x + j * size + 0.5,
        grid.y + i * size + 0.5,
        size - 1,
        size - 1,
        `${on ? (j === j0 ? "forange" : j === 0 && s.sink > 0 ? "fblue half" : "fgrey half") : "faint"}`,
        "mask",
      );
    });
    const [row, column] = CELLS[Math.max(0, s.cell)];
    const numbers = Array.from(
      { length: N },
      (_, k) =>
        text(grid.x + (k + 0.5) * size, grid.y - 4, k % 2 ? k + 1 : "", "tiny mid quiet") +
        text(
          grid.x - 6,
          grid.y + (k + 0.5) * size + 4,
          k + 1,
          k === N - 1 ? "tiny end bold" : "tiny end quiet",
          k === N - 1 ? "last" : "",
        ),
    );
    return [
      path(dry, "faint thin low"), ...wet, ...nodes,
      ...Array.from({ length: N }, (_, k) => text(x(k), river.y - 20, k + 1, "small mid")),
      text(x(0) - 22, bars.y - 10, `what the last token holds after ${many(s.layers, "layer")}`, "small quiet"),
      line(x(0) - 12, bars.y + bars.h, x(N - 1) + 12, bars.y + bars.h, "ink thin"), ...tall,
      text(x(0), bars.y + bars.h + 18, `${say(100 * last[0], 2)}%`, "small mid", "first"),
      j0 ? text(x(j0), bars.y + bars.h + 18, `${say(100 * last[j0], 2)}%`, "small mid bold", "last") : "",
      circle(x(N - 1), y(s.layers), 14, "ink", "last"),
      ...cells, ...numbers, box(grid.x, grid.y + (N - 1) * size, N * size, size, "ink thin", "last"),
      s.cell < 0 ? "" : box(grid.x + column * size, grid.y + row * size, size, size, "ink"),
      text(grid.x, grid.y - 24, "row j sees column i: paint", "small quiet"),
      text(
        wide ? grid.x : w - 30,
        wide ? bars.y + 24 : bars.y - 10,
        wide ? `as if ${say(heard(last), 2)} of ${N}` : "",
        "big",
        "last",
      ),
      text(
        wide ? grid.x : grid.x,
        wide ? bars.y + 46 : grid.y + N * size + 26,
        wide ? "tokens had equal weights" : `as if ${say(heard(last), 2)} of ${N} tokens`,
        wide ? "small" : "bold",
        "last",
      ),
      wide ? "" : text(grid.x, grid.y + N * size + 46, "had equal weights", "bold", "last"),
    ].join("");
  },
  sentence: (s) => {
    const last = flow(s).at(-1)[N - 1];
    const most = last.indexOf(Math.max(...last)) + 1;
    const equal = last.filter((share) => Math.abs(share - last[most - 1]) < 1e-9).length;
    const largest = `${say(100 * last[most - 1], 2)}%`;
    const who = equal === 1 ? `Token ${most} has the most, ${largest}.`
      : equal === N ? `All tokens have the same, ${largest} each.` : `Each of ${equal} tokens has the most, ${largest}.`;
    return `After ${many(s.layers, "layer")}, ${say(100 * last[s.token - 1], 2)}% of the last token's state comes from token ${s.token}. This is as if ${say(heard(last), 2)} of ${N} tokens had equal weights (the exponential of the entropy). ${who}`;
  },
});
export default { render };

import { box, circle, clamp, line, mount, path, place, say, scale, text } from "./kit.js";
import { roundTo, uniformInfluence } from "./mathematics.js";

const [CELLS, LAYERS, COUNTED, LEAD] = [16, 4, 188, 4]; // COUNTED: counting.first_token_limit("bf16")

const token = (s) => 1 + Math.round(s.flip * (Math.round(s.n) - 1));
const facts = (s) => {
  const n = Math.round(s.n);
  const heard = uniformInfluence(n, LAYERS)[token(s) - 1];
  const found = Math.exp(LEAD) / (Math.exp(LEAD) + n - 1);
  const kept = roundTo(1 - 1 / n, "bf16");
  return [
    { lost: n > 16 * CELLS, short: n > 16 * CELLS ? "too many for one place" : "one place has room for all", why: `${n} yes-or-no tokens, ${CELLS} × 16 bits`, page: "1-over-squashing" },
    { lost: heard * n < 1, short: heard * n < 1 ? "heard less than others" : "heard more than others", why: `after ${LAYERS} layers ${say(100 * heard * n, 2)} % of an equal share`, page: "2-causal-attention" },
    { lost: kept === 1, short: kept === 1 ? "two inputs, one vector" : "two inputs, two vectors", why: `in bf16 (8 bits) the flip is ${kept === 1 ? "gone" : "there"}`, page: "3-representational-collapse" },
    { lost: n > COUNTED, short: n > COUNTED ? "how many were there?" : "the count can be read", why: `by one token's share in bf16: up to ${COUNTED}`, page: "4-counting" },
    { lost: true, short: "in what order?", why: "the mean is the same in every order", page: "5-rope-frequencies" },
    { lost: found < 0.5, short: found < 0.5 ? "the noise of the others" : "one is above the noise", why: `a lead of ${LEAD} gets ${say(100 * found, 2)} % of the weight`, page: "6-differential-transformer" },
  ];
};

const layout = (w) => {
  const wide = w >= 560;
  const plane = { x: 30, y: 24, w: wide ? 0.45 * w - 30 : w - 80, h: wide ? 290 : 240 };
  const list = wide ? { x: 0.45 * w + 62, y: 18, step: 52 } : { x: 26, y: 350, step: 48 };
  const vector = { x: plane.x + plane.w, y: plane.y + plane.h / 2 };
  const spots = [
    [vector.x - 34, vector.y],
    null,
    [vector.x + 14, vector.y - 76],
    [vector.x + 14, vector.y + 76],
    [plane.x - 18, plane.y - 10],
    [plane.x + plane.w * 0.52, plane.y + plane.h * 0.2],
  ];
  return { wide, plane, list, vector, spots, height: wide ? 348 : 350 + 6 * 48 };
};
const ease = (x0, y0, x1, y1) => `M${place(x0)} ${place(y0)}C${place(x0 + 0.55 * (x1 - x0))} ${place(y0)} ${place(x0 + 0.45 * (x1 - x0))} ${place(y1)} ${place(x1)} ${place(y1)}`;

export const render = mount({
  name: "welcome",
  words: { tokens: "tokens", vector: "vector", flip: "flip" },
  start: () => ({ n: 300, flip: 0.72 }),
  tidy: (s) => ({ n: clamp(s.n, 10, 1000), flip: clamp(s.flip, 0, 1) }),
  controls: () => [
    { key: "n", label: "tokens n", min: 1, max: 3, step: 0.01, to: (x) => Math.round(10 ** x), from: Math.log10, show: (x) => say(Math.round(x), 4) },
    { kind: "play", label: "Read on", restart: { n: 10 }, step: (s, seconds) => (s.n < 1000 ? { n: Math.min(1000, s.n * 1.8 ** seconds) } : null) },
  ],
  height: (w) => layout(w).height,
  items: (s, data, w) => {
    const { plane, list, spots } = layout(w);
    const y = scale([0, 1], [plane.y, plane.y + plane.h]);
    const spot = (k) => spots[k] ?? [plane.x + 66, y(s.flip) - 4];
    const at = (py) => ({ flip: clamp((py - plane.y) / plane.h, 0, 1) });
    return [
      ...facts(s).map((fact, k) => ({
        id: `place${k}`, x: spot(k)[0], y: spot(k)[1], r: 13, bare: true, part: `place${k}`,
        label: `${k + 1}, ${fact.short}: ${fact.why}${fact.lost ? ", lost" : ""}. Chapter ${k + 1}`, href: `chapters/${fact.page}/lesson.html`,
      })),
      ...facts(s).map((fact, k) => ({ id: `line${k}`, area: [list.x - 18, list.y + k * list.step - 14, w - list.x + 16, list.step - 4], href: `chapters/${fact.page}/lesson.html`, part: `place${k}`, quiet: true })),
      {
        id: "flip", x: plane.x, y: y(s.flip), look: "orange", label: "the token that is flipped", range: [token(s), 1, Math.round(s.n)],
        value: `token ${token(s)} of ${Math.round(s.n)}`, drag: (px, py) => at(py), key: (step, now, _, key) => ({ flip: clamp(now.flip + (/Up|Down/.test(key) ? -step : step) / Math.max(9, Math.min(50, now.n - 1)), 0, 1) }),
      },
    ];
  },
  picture: (s, data, w) => {
    const { wide, plane, list, vector, spots } = layout(w);
    const n = Math.round(s.n);
    const y = scale([0, 1], [plane.y, plane.y + plane.h]);
    const shown = Math.min(n, 110);
    const width = 60 / n; // all lines together are as wide at every n
    const fan = Array.from({ length: shown }, (_, k) => ease(plane.x, y(shown === 1 ? 0.5 : k / (shown - 1)), vector.x, vector.y + ((k / (shown - 1)) - 0.5) * 44)).join("");
    const ticks = Array.from({ length: Math.min(n, 290) }, (_, k) => `M${plane.x - 9} ${place(y(k / (Math.min(n, 290) - 1)))}h9`).join("");
    const side = 7;
    const cells = Array.from({ length: CELLS }, (_, k) => box(vector.x, vector.y - 56 + k * side, 28, side - 1.2, `fblue ${k % 3 ? "" : "half"}`)).join("");
    const all = facts(s);
    const kept = roundTo(1 - 1 / n, "bf16");
    const marks = all.map((fact, k) => {
      const [cx, cy] = spots[k] ?? [plane.x + 66, y(s.flip) - 4];
      return `<g data-part="place${k}">${fact.lost ? circle(cx, cy, 17, "forange wash") : ""}${circle(cx, cy, 11, fact.lost ? "forange" : "fground grey")}${text(cx, cy + 5, k + 1, `small bold mid ${fact.lost ? "over" : ""}`)}</g>`;
    });
    const lines = all.map((fact, k) => {
      const top = list.y + k * list.step;
      return `<g data-part="place${k}">${circle(list.x - 10, top, 10, fact.lost ? "forange" : "fground grey")}${text(list.x - 10, top + 5, k + 1, `small bold mid ${fact.lost ? "over" : ""}`)}
        ${text(list.x + 8, top + 5, fact.short, fact.lost ? "bold" : "quiet")}${text(list.x + 8, top + 24, fact.why, "small quiet")}</g>`;
    });
    return [
      `<g data-part="tokens">${path(fan, "ink low", "", `style="stroke-width:${Math.max(0.3, Math.min(3, width * (n / shown) * 0.5))}"`)}${path(ticks, "ink thin")}</g>`,
      path(ease(plane.x, y(s.flip), vector.x, vector.y + (s.flip - 0.5) * 44), "orange", "flip", `style="stroke-width:${place(10 * Math.max(0.6, 60 / n)) / 10}"`),
      `<g data-part="vector">${box(vector.x - 2, vector.y - 58, 32, CELLS * side + 3, "ink thin")}${cells}</g>`,
      text(plane.x, plane.y + plane.h + 22, `${say(n, 4)} tokens: all ones but token ${token(s)}`, "small"),
      text(wide ? vector.x + 30 : w, wide ? vector.y + 112 : plane.y + plane.h + 48, `mean ${(1 - 1 / n).toFixed(4)}`, "small end"),
      text(wide ? vector.x + 30 : w, wide ? vector.y + 131 : plane.y + plane.h + 68, `in bf16 ${kept === 1 ? "1" : kept.toFixed(4)}`, "small bold end"),
      text(vector.x + 30, vector.y - 100, "one vector", "small end bold"),
      ...marks, ...lines,
    ].join("");
  },
  sentence: (s) => {
    const n = Math.round(s.n);
    const kept = roundTo(1 - 1 / n, "bf16");
    const lit = facts(s).flatMap((fact, k) => (fact.lost ? [k + 1] : []));
    const trace = kept === 1 ? "and not the mean in bf16 (8 bits of precision): the flip leaves no trace" : "and in bf16 (8 bits of precision) it can still be seen";
    return `Flipping token ${token(s)} of ${say(n, 4)} changes the mean by ${say(1 / n, 2)}, ${trace}. Something is lost at ${lit.join(", ")}.`;
  },
});
export default { render };

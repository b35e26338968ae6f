import { box, circle, clamp, curve, line, many, mount, path, place, say, scale, text } from "./kit.js";
import { frequencies } from "./mathematics.js";

const [WIDTH, FARTHEST] = [16, 128];
const PAIRS = WIDTH / 2;

// the angle of each key's hand against its query's, and the sum of the hands that are not put aside
const angles = (s, distance = s.distance) =>
  frequencies(WIDTH, s.base).map((theta, k) => distance * theta + s.phases[k]);
const score = (s, distance = s.distance) =>
  angles(s, distance).reduce((sum, angle, k) => sum + s.pairs[k] * Math.cos(angle), 0);
const wrap = (angle) => angle - 2 * Math.PI * Math.round(angle / (2 * Math.PI));

const layout = (w) => {
  const columns = w < 560 ? 4 : 8;
  const cell = w / columns;
  const r = Math.min(36, cell / 2 - 7);
  const top = 26;
  const row = 2 * r + 52;
  const clocks = Array.from({ length: PAIRS }, (_, k) => [
    cell * ((k % columns) + 0.5),
    top + r + row * Math.floor(k / columns),
  ]);
  const under = top + row * (PAIRS / columns) + 44;
  const wide = columns === 8;
  const chain = { x: 0, y: under, w: wide ? 0.36 * w : w, h: 190 };
  const plot = wide
    ? { x: 0.36 * w + 44, y: under, w: 0.64 * w - 54, h: 190 }
    : { x: 34, y: under + 226, w: w - 44, h: 170 };
  return { clocks, r, chain, plot, height: plot.y + plot.h + 30 };
};

const START = { distance: 24, base: 10000, phases: Array(PAIRS).fill(0), pairs: Array(PAIRS).fill(1) };
const turned = (s, k, angle) => ({
  phases: s.phases.map((old, i) => (i === k ? wrap(old + angle - angles(s)[k]) : old)),
});

export const render = mount({
  name: "clocks",
  words: {
    clocks: "clocks",
    clock: "clocks",
    chain: "chain",
    score: "score",
    shadow: "shadow",
    shadows: "shadow",
    "fastest clock": "clock0",
    "slowest clock": "clock7",
    curve: "curve",
  },
  start: () => ({ ...START }),
  tidy: (s) => ({
    distance: clamp(s.distance, 0, FARTHEST),
    base: clamp(s.base, 2, 1e7),
    phases: Array.from({ length: PAIRS }, (_, k) => s.phases[k] || 0),
    pairs: Array.from({ length: PAIRS }, (_, k) => (s.pairs[k] === 0 ? 0 : 1)),
  }),
  controls: () => [
    {
      key: "distance",
      label: "distance Δ (tokens)",
      min: 0,
      max: FARTHEST,
      show: (x) => String(Math.round(x)),
    },
    {
      key: "base",
      label: "base b",
      min: 1,
      max: 6,
      step: 0.05,
      to: (x) => 10 ** x,
      from: Math.log10,
      show: (x) => say(x, 2),
    },
    {
      kind: "play",
      label: "Walk away",
      restart: { distance: 0 },
      step: (s, seconds) => (s.distance < FARTHEST ? { distance: s.distance + 5 * seconds } : null),
    },
    {
      kind: "button",
      label: "Tune the peak to this Δ",
      press: (s) => ({
        phases: s.phases.map((old, k) => wrap(-Math.round(s.distance) * frequencies(WIDTH, s.base)[k])),
      }),
    },
    {
      kind: "button",
      label: "Start over",
      press: () => ({ ...START }),
      off: (s) => Object.entries(START).every(([key, value]) => String(s[key]) === String(value)),
    },
  ],
  height: (w) => layout(w).height,
  items: (s, data, w) => {
    const { clocks, r, plot } = layout(w);
    const x = scale([0, FARTHEST], [plot.x, plot.x + plot.w]);
    const at = (px) => Math.round(clamp(((px - plot.x) / plot.w) * FARTHEST, 0, FARTHEST));
    return [
      { id: "plot", area: [plot.x, plot.y, plot.w, plot.h], flat: true, drag: (px) => ({ distance: at(px) }) },
      {
        id: "here", x: x(s.distance), y: scale([PAIRS, -PAIRS], [plot.y, plot.y + plot.h])(score(s)), flat: true, look: "orange",
        label: "distance on the curve", range: [Math.round(s.distance), 0, FARTHEST], value: `${many(Math.round(s.distance), "token")}, score ${say(score(s, Math.round(s.distance)), 2)}`,
        drag: (px) => ({ distance: at(px) }), key: (step, now) => ({ distance: clamp(Math.round(now.distance) + step, 0, FARTHEST) }),
      },
      ...clocks.flatMap(([cx, cy], k) => {
        const angle = angles(s)[k];
        const degrees = Math.round((wrap(angle) * 180) / Math.PI);
        return [
          {
            id: `hand${k}`,
            x: cx + r * Math.cos(angle),
            y: cy - r * Math.sin(angle),
            r: 15,
            knob: 6,
            look: "blue",
            part: `clock${k}`,
            label: `hand of clock ${k + 1}`,
            range: [degrees, -180, 180],
            value: `${degrees} degrees`,
            drag: (px, py, now) => turned(now, k, Math.atan2(cy - py, px - cx)),
            key: (step, now) =>
              turned(
                now,
                k,
                Math.abs(step) === Infinity
                  ? step > 0
                    ? Math.PI
                    : 0
                  : angles(now)[k] + (step * Math.PI) / 36,
              ),
          },
          {
            id: `pair${k}`,
            area: [cx - r, cy + r + 3, 2 * r, 25],
            label: `clock ${k + 1} counts`,
            role: "checkbox",
            pressed: s.pairs[k] === 1,
            press: (now) => ({ pairs: now.pairs.map((on, i) => (i === k ? 1 - on : on)) }),
          },
        ];
      }),
    ];
  },
  picture: (s, data, w) => {
    const { clocks, r, chain, plot } = layout(w);
    const theta = frequencies(WIDTH, s.base);
    const turn = angles(s);
    const total = score(s, Math.round(s.distance)); // as the sentence says it
    const faces = clocks.map(([cx, cy], k) => {
      const [dx, dy] = [r * Math.cos(turn[k]), -r * Math.sin(turn[k])];
      const swept = wrap(turn[k]);
      const arc = `M${place(cx + r / 2.6)} ${place(cy)}A${place(r / 2.6)} ${place(r / 2.6)} 0 0 ${swept > 0 ? 0 : 1} ${place(cx + dx / 2.6)} ${place(cy + dy / 2.6)}`;
      const word = k === 0 ? "fastest" : k === PAIRS - 1 ? "slowest" : "";
      return `<g data-part="clock${k}" class="${s.pairs[k] ? "" : "low"}"><g data-part="clocks">${circle(cx, cy, r, "faint")}${line(cx, cy, cx + r, cy, "ink thin")}${path(arc, "grey thin")}</g>
        ${line(cx, cy, cx + dx, cy, "orange fat", "shadow")}<g data-part="clocks">${line(cx, cy, cx + dx, cy + dy, "blue thick round")}</g>
        ${text(cx, cy - r - 9, word, "small mid quiet")}${box(cx - 32, cy + r + 9, 13, 13, "ink thin")}${s.pairs[k] ? path(`M${place(cx - 29)} ${place(cy + r + 15.5)}l3 4l6 -8`, "ink") : ""}${text(cx - 15, cy + r + 20, say((2 * Math.PI) / theta[k], 2), "small")}</g>`;
    });
    // the hands tip to tail
    const unit = Math.min(chain.w / 2 / (PAIRS + 0.6), 16);
    const [ox, oy] = [chain.x + chain.w / 2, chain.y + chain.h / 2 - 6];
    const points = [[ox, oy]];
    turn.forEach((angle, k) => {
      if (!s.pairs[k]) return;
      const [x, y] = points.at(-1);
      points.push([x + unit * Math.cos(angle), y - unit * Math.sin(angle)]);
    });
    const [ex, ey] = points.at(-1);
    const floor = chain.y + chain.h - 20;
    const tail = [
      line(ox, chain.y + 2, ox, floor + 8, "faint dash"),
      line(ex, ey, ex, floor, "orange thin dash", "score"),
      line(ox, floor, ex, floor, "orange fat", "score"),
      line(ox - PAIRS * unit, floor + 8, ox + PAIRS * unit, floor + 8, "faint"),
      text(ox - PAIRS * unit, floor + 26, `−${PAIRS}`, "small quiet"),
      text(ox + PAIRS * unit, floor + 26, PAIRS, "small quiet end"),
      text(ox, floor + 26, `score ${say(total, 2)}`, "mid bold", "score"),
      `<g data-part="chain">${curve(points, "blue thick round")}${points.map(([x, y]) => circle(x, y, 2.6, "fink")).join("")}</g>`,
      text(chain.x, chain.y - 4, "the hands, tip to tail", "small quiet"),
      text(0, chain.y - 44, "below each clock: tokens per turn; ticked: it counts", "small quiet"),
    ];
    // the score against the distance
    const [x, y] = [scale([0, FARTHEST], [plot.x, plot.x + plot.w]), scale([PAIRS, -PAIRS], [plot.y, plot.y + plot.h])];
    const distances = Array.from({ length: 2 * FARTHEST + 1 }, (_, k) => k / 2);
    const back = [
      ...[-PAIRS, 0, PAIRS].flatMap((v) => [
        line(plot.x, y(v), plot.x + plot.w, y(v), "faint"),
        text(plot.x - 7, y(v) + 5, String(v).replace("-", "−"), "small end quiet"),
      ]),
      ...[0, 32, 64, 96, 128].map((v) =>
        text(x(v), plot.y + plot.h + 19, v, `small ${v === 128 ? "end" : "mid"} quiet`),
      ),
      text(plot.x, plot.y - 11, "score against distance Δ", "small quiet"),
      curve(distances.map((d) => [x(d), y(score(s, d))]), "blue", "curve"),
      line(x(s.distance), plot.y, x(s.distance), plot.y + plot.h, "orange thin dash"),
    ];
    return [...faces, ...tail, ...back].join("");
  },
  sentence: (s) => {
    const theta = frequencies(WIDTH, s.base);
    const distance = Math.round(s.distance);
    const counted = s.pairs.filter(Boolean).length;
    const total = score(s, distance);
    const others = Array.from({ length: FARTHEST + 1 }, (_, d) => [score(s, d), d]).sort((a, b) => b[0] - a[0])[0];
    const tuned = s.phases.some((x) => x !== 0);
    if (!counted) return "No clock is ticked: with no pair there is no score.";
    const what = `${many(distance, "token")} apart, ${counted === 1 ? "the one hand reaches" : `the ${counted} hands reach`} ${say(total, 2)} of ${counted}.`;
    if (others[1] === distance)
      return `${what} No other distance up to ${FARTHEST} scores higher: this head looks ${distance} back.`;
    if (tuned) return `${what} The highest score, ${say(others[0], 2)}, is at distance ${others[1]}.`;
    return `${what} The fastest clock has made ${say((distance * theta[0]) / (2 * Math.PI), 2)} turns, the slowest ${say((distance * theta.at(-1)) / (2 * Math.PI), 2)}.`;
  },
});
export default { render };

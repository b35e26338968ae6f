import { box, circle, clamp, line, mount, path, place, say, scale, text } from "./kit.js";
import { BITS, floats, massOnOnes, roundTo } from "./mathematics.js";

const MOST = 4096;
const count = (s, copies = s.copies) => {
  const [all, ones] = [s.pattern.length, [...s.pattern].filter((c) => c === "1").length].map(
    (x) => x * Math.round(copies),
  );
  return { n: all + Number(s.odd), ones, zeros: all - ones + Number(s.odd) };
};
const needle = (s, copies) => massOnOnes(count(s, copies).zeros, count(s, copies).ones, 0);
const stored = (x, type) =>
  roundTo(x, type) < 1e-3 ? say(roundTo(x, type), 4) : String(Number(roundTo(x, type).toPrecision(5)));

const step = (x, type) => 2 ** (Math.floor(Math.log2(x)) - BITS[type] + 1);
/** The weight of the odd token, now and with one copy more, and how near one may look: both weights in the frame, and five boxes. */
const weights = (s) => {
  const { n } = count(s);
  const more = n + s.pattern.length;
  return { n, more, one: 1 / n, other: 1 / more, closest: Math.max(5 * step(1 / n, s.type), 2.6 * (1 / n - 1 / more)) };
};
const DRAWN = 380; // boxes that can be told apart
/** Whether at the nearest look both weights and single boxes are in the frame. */
const reached = (s) => weights(s).closest / step(weights(s).other, s.type) < DRAWN;
const found = new Map();
/** The first number of tokens whose weight is that of one copy more, in a type; null if there is none up to the end of the string. */
const first = (s) => {
  const key = `${s.type} ${s.pattern} ${s.odd}`;
  if (!found.has(key)) {
    const by = s.pattern.length;
    let n = by + 1;
    while (n < MOST && roundTo(1 / n, s.type) !== roundTo(1 / (n + by), s.type)) n += by;
    found.set(key, n < MOST ? [n, n + by] : null);
  }
  return found.get(key);
};

const layout = (w) => {
  const wide = w >= 560;
  const gauge = { x: wide ? 150 : w / 2, y: wide ? 268 : 262, r: 118 };
  const floatline = wide ? { x: 330, y: 168, w: w - 340, h: 74 } : { x: 12, y: 404, w: w - 24, h: 74 };
  return { gauge, floatline, strip: { x: 12, y: 62, w: w - 24 }, height: wide ? 340 : 546 };
};
const most = (s) => Math.floor((MOST - 1) / s.pattern.length);
const along = (s, strip) => scale([0, Math.log(most(s))], [strip.x, strip.x + strip.w]);

export const render = mount({
  name: "needle",
  words: { needle: "needle", "odd token": "odd", box: "box", boxes: "box", floats: "box" },
  start: () => ({ copies: 216, odd: true, pattern: "10", type: "bf16", zoom: 1 }),
  tidy: (s) => ({
    copies: clamp(
      s.copies,
      1,
      Math.floor((MOST - 1) / (/^[01]{1,3}$/.test(s.pattern) ? s.pattern.length : 1)),
    ),
    odd: Boolean(s.odd),
    pattern: ["1", "10", "110"].includes(s.pattern) ? s.pattern : "1",
    type: ["bf16", "fp16", "fp32"].includes(s.type) ? s.type : "bf16",
    zoom: clamp(s.zoom, 0, 1),
  }),
  controls: () => [
    {
      kind: "choice",
      key: "pattern",
      label: "string",
      options: [
        ["1", "1, again and again"],
        ["10", "1 0, again and again"],
        ["110", "1 1 0, again and again"],
      ],
    },
    {
      kind: "button",
      label: (s) => `One copy more: ${[...s.pattern].join(" ")}`,
      press: (s) => ({ copies: Math.round(s.copies) + 1 }),
      ms: 1,
      off: (s) => s.copies >= most(s),
    },
    { kind: "switch", key: "odd", label: "one odd token in front" },
    {
      kind: "choice",
      key: "type",
      label: "stored as",
      options: ["bf16", "fp16", "fp32"].map((type) => [type, `${type} (${BITS[type]} bits of precision)`]),
      off: (s) => !s.odd,
    },
    {
      key: "zoom",
      label: "zoom",
      min: 0,
      max: 1,
      step: 0.01,
      off: (s) => !s.odd || !reached(s),
      show: (x, s) =>
        !s.odd ? "no weight" : !reached(s) ? "boxes too narrow" : x > 0.99 ? "all the way" : x.toFixed(2),
    },
  ],
  height: (w) => layout(w).height,
  items: (s, data, w) => {
    const { strip } = layout(w);
    const x = along(s, strip);
    const at = (px) => ({
      copies: clamp(Math.round(Math.exp(((px - strip.x) / strip.w) * Math.log(most(s)))), 1, most(s)),
    });
    return [
      { id: "strip", area: [strip.x, strip.y - 46, strip.w, 62], flat: true, drag: at },
      {
        id: "end",
        x: x(Math.log(s.copies)),
        y: strip.y,
        look: "blue",
        flat: true,
        label: "copies",
        range: [Math.round(s.copies), 1, most(s)],
        value: `${Math.round(s.copies)} ${Math.round(s.copies) === 1 ? "copy" : "copies"}`,
        drag: at,
        key: (step, now) => ({ copies: clamp(Math.round(now.copies) + step, 1, most(now)) }),
      },
    ];
  },
  picture: (s, data, w) => {
    const { gauge, floatline, strip } = layout(w);
    const { n } = count(s);
    // the string: each token a square, as many as there is room for
    const x = along(s, strip);
    const [end, side] = [x(Math.log(s.copies)), 13];
    const room = Math.min(n, Math.max(12, Math.floor((end - strip.x) / side) + 1));
    const tokens = Array.from({ length: room }, (_, k) => {
      const sign = s.odd && k === 0 ? "•" : s.pattern[(k - Number(s.odd)) % s.pattern.length];
      return text(
        strip.x + k * side,
        strip.y - 20,
        room < n && k === room - 1 ? "…" : sign,
        sign === "•" ? "mid bold" : "mid",
        sign === "•" ? "odd" : "",
      );
    });
    // the gauge: the weight of all ones together
    const [now, next] = [needle(s, s.copies), needle(s, s.copies + 1)];
    /** @type {(share: number, r: number) => [number, number]} */
    const tip = (share, r) => [gauge.x - r * Math.cos(Math.PI * share), gauge.y - r * Math.sin(Math.PI * share)];
    const hand = (share, name, r) => line(gauge.x, gauge.y, ...tip(share, r), name, "needle");
    const marks = Array.from({ length: 11 }, (_, k) =>
      line(...tip(k / 10, gauge.r), ...tip(k / 10, gauge.r - (k % 5 ? 6 : 12)), "grey thin"),
    );
    const dial = [
      path(
        `M${gauge.x - gauge.r} ${gauge.y}A${gauge.r} ${gauge.r} 0 0 1 ${gauge.x + gauge.r} ${gauge.y}`,
        "faint",
      ),
      ...marks,
      ...[0, 0.5, 1].map((v) => text(...tip(v, gauge.r + 15), String(v), "small mid quiet")),
      hand(next, "orange dash", gauge.r - 14),
      hand(now, "blue thick round", gauge.r - 14),
      circle(gauge.x, gauge.y, 6, "fink"),
      text(gauge.x, gauge.y + 30, `weight of all ones: ${now.toFixed(4)}`, "mid", "needle"),
      text(
        gauge.x,
        gauge.y + 52,
        `with one copy more: ${now === next ? "the same" : next.toFixed(4)}`,
        "small mid quiet",
      ),
    ];
    // the line of floats around the odd token's weight, and that with one copy more
    const { more, one, other, closest } = weights(s);
    const kept = [roundTo(one, s.type), roundTo(other, s.type)];
    const each = step(one, s.type);
    const width = closest ** s.zoom;
    const middle = clamp((one + other) / 2, width / 2, 1 - width / 2);
    const [low, high] = [Math.max(1e-9, middle - width / 2), middle + width / 2];
    const at = scale([middle - width / 2, high], [floatline.x, floatline.x + floatline.w]);
    const values = floats(Math.max(low - 2 * each, 1e-7), high + 2 * each, s.type, 400);
    const crowded = values.length >= 400;
    const boxes = crowded
      ? []
      : values.flatMap((value, k) => {
          const [a, b] = [
            k ? (values[k - 1] + value) / 2 : value,
            k + 1 < values.length ? (values[k + 1] + value) / 2 : value,
          ];
          const [xa, xb] = [
            clamp(at(a), floatline.x, floatline.x + floatline.w),
            clamp(at(b), floatline.x, floatline.x + floatline.w),
          ];
      if (xb - xa < 0.2) return [];
      const hit = kept.includes(value) && s.odd;
      const name = hit ? (kept[0] === kept[1] ? "forange wash" : "fblue wash") : k % 2 ? "ffaint low" : "";
      return [
        box(xa, floatline.y, xb - xa, floatline.h, name, "box"),
        values.length < 90 ? line(xa, floatline.y, xa, floatline.y + floatline.h, "faint", "box") : "",
            values.length < 40 && at(value) > floatline.x && at(value) < floatline.x + floatline.w
              ? circle(at(value), floatline.y + floatline.h - 12, 3.5, hit ? "fink" : "fgrey", "box")
              : "",
      ];
    });
    const close = Math.abs(at(one) - at(other)) < 60;
    const edge = (x, room) => clamp(x, floatline.x + room, floatline.x + floatline.w - room);
    const between = close ? edge((at(one) + at(other)) / 2, 62) : 0;
    const away = close ? Math.abs(at(one) - at(other)) / 2 + 5 : 0;
    const same = kept[0] === kept[1];
    const scene = s.odd
      ? [
          ...boxes, box(floatline.x, floatline.y, floatline.w, floatline.h, "faint"),
          line(at(one), floatline.y - 10, at(one), floatline.y + floatline.h - 12, "blue thick", "odd"),
          line(at(other), floatline.y - 10, at(other), floatline.y + floatline.h - 12, "orange thick", "odd"),
          text(
            close ? Math.min(between + away, floatline.x + floatline.w - 50) : edge(at(one), 24),
            floatline.y - 16,
            `1/${n}`,
            close ? "" : "mid",
          ),
          text(
            close ? Math.max(between - away, floatline.x + 50) : edge(at(other), 24),
            floatline.y - 16,
            `1/${more}`,
            close ? "end" : "mid",
          ),
          text(
            floatline.x + floatline.w / 2,
            floatline.y + floatline.h + 24,
            same
              ? `in ${s.type} both are ${stored(one, s.type)}`
              : `in ${s.type} ${stored(other, s.type)} and ${stored(one, s.type)}`,
            "mid bold",
            "box",
          ),
          text(
            floatline.x + floatline.w / 2,
            floatline.y + floatline.h + 46,
            !crowded
              ? "each box holds what is rounded to its dot"
              : reached(s)
                ? "too many boxes to draw: zoom in"
                : `about ${say(Number(((one - other) / step(other, s.type)).toPrecision(2)))} boxes between: too narrow`,
            "small mid quiet",
          ),
          text(floatline.x, floatline.y - 42, "the odd token's weight; orange: a copy more", "small quiet"),
        ]
      : [
          box(floatline.x, floatline.y, floatline.w, floatline.h, "faint dash"),
          text(
            floatline.x + floatline.w / 2,
            floatline.y + floatline.h / 2,
            "without an odd token,",
            "mid quiet",
          ),
          text(
            floatline.x + floatline.w / 2,
            floatline.y + floatline.h / 2 + 21,
            "no weight tells the count",
            "mid quiet",
          ),
        ];
    return [
      ...tokens,
      line(strip.x, strip.y, strip.x + strip.w, strip.y, "faint"),
      line(strip.x, strip.y, end, strip.y, "blue"),
      ...dial,
      ...scene,
    ].join("");
  },
  sentence: (s) => {
    const { n } = count(s);
    const [now, next] = [needle(s, s.copies), needle(s, s.copies + 1)];
    if (!s.odd)
      return `Without an odd token, every number of copies gives the same needle, ${say(now, 4)}, because softmax depends on the ratio and not on the count.`;
    const more = n + s.pattern.length;
    const same = roundTo(1 / n, s.type) === roundTo(1 / more, s.type);
    const told = same
      ? `In ${s.type} 1/${n} and 1/${more} round to the same number, so this weight cannot tell ${n} tokens from ${more}.`
      : `In ${s.type} 1/${n} and 1/${more} round to different numbers, so this weight can tell ${n} tokens from ${more}.`;
    const begin = first(s);
    const from = begin ? ` The first two weights that round to the same number are 1/${begin[0]} and 1/${begin[1]}.` : "";
    return `With one odd token, one more copy moves the needle by ${say(Math.abs(next - now), 2)}. ${told}${from}`;
  },
});
export default { render };

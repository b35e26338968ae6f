// Pictures of the page "Try it": bars and curves as SVG with words, maps on a canvas.
const escape = (text) =>
  String(text).replace(/[&<>"]/g, (c) => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" })[c]);
const COLOURS = ["blue", "orange"];

/**
 * A number in few characters.
 * @param {number} x
 * @param {number} [digits]
 */
export function say(x, digits = 2) {
  if (!Number.isFinite(x)) return "–";
  if (x === 0) return "0";
  const size = Math.abs(x);
  if (size >= 1e-3 && size < 1e5)
    return (
      size >= 100 ? Math.round(x).toLocaleString("en-US") : String(Number(x.toPrecision(digits)))
    ).replace("-", "−");
  const [front, power] = x.toExponential(digits - 1).split("e");
  return `${front.replace("-", "−")} × 10${[...String(Number(power))].map((c) => "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"["-0123456789".indexOf(c)]).join("")}`;
}

/**
 * Rows of a name and one or two values, as horizontal bars.
 * @param {{ name: string, values: number[] }[]} rows
 * @param {string} what
 * @param {string} alt
 * @param {number} room
 */
export function bars(rows, what, alt, room) {
  const most = Math.max(...rows.flatMap(({ values }) => values), 1e-12), each = rows[0].values.length;
  const high = 12 * each + 12, left = room < 520 ? 110 : 150, full = Math.min(room, 660), wide = full - left - 95;
  const lines = rows.map(({ name, values }, k) => {
    const y = 26 + k * high;
    const inside = values
      .map(
        (value, i) =>
          `<rect x="${left}" y="${y + 12 * i}" width="${((value / most) * wide).toFixed(1)}" height="10" fill="var(--${COLOURS[i]})"/><text x="${left + (value / most) * wide + 6}" y="${y + 10 + 12 * i}">${say(value)}</text>`,
      )
      .join("");
    return `<text x="${left - 8}" y="${y + 5 + 6 * each}" text-anchor="end">${escape(name.length * 9 > left ? `${name.slice(0, Math.floor(left / 9) - 1)}…` : name)}</text>${inside}`;
  });
  return `<svg viewBox="0 0 ${full} ${30 + rows.length * high}" style="max-width:${full}px" role="img" aria-label="${escape(alt)}"><text class="quiet" x="${left}" y="14">${escape(what)}</text>${lines.join("")}</svg>`;
}

/**
 * Curves over 0, 1, 2, … on a logarithmic scale.
 * @param {{ name: string, colour: string, values: number[], dashed?: boolean }[]} lines
 * @param {string} xlabel
 * @param {string} ylabel
 * @param {string} alt
 * @param {number} room
 */
export function curves(lines, xlabel, ylabel, alt, room) {
  const all = lines.flatMap(({ values }) => values).filter((x) => x > 0);
  if (!all.length) return "<p>The two prompts have the same states.</p>";
  const low = Math.floor(Math.log10(Math.min(...all))),
    high = Math.max(low + 1, Math.ceil(Math.log10(Math.max(...all))));
  const full = Math.min(room, 760),
    narrow = full < 560,
    n = lines[0].values.length,
    [l, r, t, b] = [58, full - (narrow ? 10 : 205), 24, 300];
  const x = (k) => l + (k / (n - 1)) * (r - l),
    y = (v) => b - ((Math.log10(Math.max(v, 10 ** low)) - low) / (high - low)) * (b - t);
  const grid = Array.from(
    { length: high - low + 1 },
    (_, k) =>
      `<line class="grid" x1="${l}" x2="${x(n - 1)}" y1="${y(10 ** (low + k))}" y2="${y(10 ** (low + k))}"/><text class="quiet" x="${l - 8}" y="${y(10 ** (low + k)) + 5}" text-anchor="end">${say(10 ** (low + k), 1)}</text>`,
  );
  const ticks = Array.from(
    { length: Math.floor((n - 1) / 5) + 1 },
    (_, k) => `<text class="quiet" x="${x(5 * k)}" y="${b + 18}" text-anchor="middle">${5 * k}</text>`,
  );
  let floor = -Infinity; // names at the lines' ends, pushed apart
  const ends = lines
    .map((line) => ({ line, y: y(line.values[n - 1]) }))
    .sort((p, q) => p.y - q.y)
    .map(({ line, y: wanted }) => ({ ...line, at: (floor = Math.max(wanted, floor + 19)) }));
  const paths = ends.map(
    ({ name, colour, values, dashed, at }) =>
      `<path d="M${values.map((v, k) => `${x(k).toFixed(1)} ${y(v).toFixed(1)}`).join("L")}" fill="none" stroke="var(--${colour})" stroke-width="2.5" ${dashed ? 'stroke-dasharray="6 5"' : ""}/>${narrow ? "" : `<text x="${x(n - 1) + 8}" y="${at + 5}" style="fill:var(--${colour})">${escape(name)}</text>`}`,
  );
  const key = narrow
    ? `<div class="live-key">${lines.map(({ name, colour, dashed }) => `<span style="color:var(--${colour})">${dashed ? "╌" : "━"} ${escape(name)}</span>`).join("")}</div>`
    : "";
  return `${key}<svg viewBox="0 0 ${full} 345" style="max-width:${full}px" role="img" aria-label="${escape(alt)}">${grid.join("")}${ticks.join("")}<text class="quiet" x="${(l + x(n - 1)) / 2}" y="${b + 38}" text-anchor="middle">${escape(xlabel)}</text><text class="quiet" x="${l}" y="${t - 9}">${escape(ylabel)}</text>${paths.join("")}</svg>`;
}

const hex = (root, name) => {
  const text = getComputedStyle(root).getPropertyValue(`--${name}`).trim();
  return [1, 3, 5].map((k) => parseInt(text.slice(k, k + 2), 16));
};

/** A cell of an atlas or a whole map: the largest weight under each pixel, its square root as colour. */
function paint(image, x0, y0, side, map, n, from, to) {
  for (let py = 0; py < side; py += 1) {
    const i0 = Math.floor((py * n) / side), i1 = Math.max(i0 + 1, Math.floor(((py + 1) * n) / side));
    for (let px = 0; px < side; px += 1) {
      const j0 = Math.floor((px * n) / side), j1 = Math.max(j0 + 1, Math.floor(((px + 1) * n) / side));
      let weight = 0;
      for (let i = i0; i < i1; i += 1)
        for (let j = j0; j < j1; j += 1) if (map[i * n + j] > weight) weight = map[i * n + j];
      const share = Math.sqrt(weight),
        at = 4 * ((y0 + py) * image.width + x0 + px);
      for (let c = 0; c < 3; c += 1) image.data[at + c] = from[c] + share * (to[c] - from[c]);
      image.data[at + 3] = 255;
    }
  }
}

const FRAMES = { sink: "orange", diagonal: "green", previous: "purple", slash: "blue" };

/** All heads, layers across; returns from a click to [layer, head]. */
export function atlas(canvas, attentions, n, shape, marks, [layer, head], root) {
  const ratio = devicePixelRatio || 1, wide = canvas.parentElement.clientWidth;
  const cell = Math.max(8, Math.min(44, Math.floor(wide / shape.layers))) * 1, px = Math.floor(cell * ratio);
  [canvas.width, canvas.height] = [px * shape.layers, px * shape.heads];
  canvas.style.width = `${cell * shape.layers}px`;
  const context = canvas.getContext("2d"), from = hex(root, "ground"), to = hex(root, "blue");
  const image = context.createImageData(canvas.width, canvas.height), frame = Math.max(1, Math.round(px / 14));
  marks.forEach((kind, k) => {
    const x = Math.floor(k / shape.heads) * px, y = (k % shape.heads) * px;
    paint(image, x + frame, y + frame, px - 2 * frame, attentions.subarray(k * n * n, (k + 1) * n * n), n, from, to);
  });
  context.putImageData(image, 0, 0);
  context.lineWidth = frame;
  marks.forEach((kind, k) => {
    const x = Math.floor(k / shape.heads) * px, y = (k % shape.heads) * px;
    context.strokeStyle = getComputedStyle(root).getPropertyValue(`--${FRAMES[kind] ?? "faint"}`);
    context.strokeRect(x + frame / 2, y + frame / 2, px - frame, px - frame);
  });
  context.strokeStyle = getComputedStyle(root).color;
  context.lineWidth = Math.max(2, 2 * frame);
  context.strokeRect((layer - 1) * px, (head - 1) * px, px, px);
  return ({ offsetX, offsetY }) => {
    const unit = canvas.clientWidth / shape.layers;
    return [Math.floor(offsetX / unit) + 1, Math.floor(offsetY / unit) + 1];
  };
}

/** One head's map with its tokens on both sides, and the row of one token marked. */
export function headMap(canvas, map, words, picked, root) {
  const ratio = devicePixelRatio || 1, n = words.length, wide = Math.min(560, canvas.parentElement.clientWidth);
  const room = 96, side = wide - room, cell = side / n, lettered = cell >= 9;
  [canvas.width, canvas.height] = [wide * ratio, wide * ratio].map(Math.floor);
  canvas.style.width = `${wide}px`;
  const context = canvas.getContext("2d"), px = Math.floor(side * ratio);
  const image = context.createImageData(px, px);
  paint(image, 0, 0, px, map, n, hex(root, "ground"), hex(root, "blue"));
  context.putImageData(image, Math.floor(room * ratio), 0);
  context.scale(ratio, ratio);
  const style = getComputedStyle(root);
  context.strokeStyle = style.getPropertyValue("--faint");
  context.strokeRect(room, 0, side, side);
  context.strokeStyle = style.getPropertyValue("--orange");
  context.lineWidth = 2;
  context.strokeRect(room, picked * cell, side, cell);
  context.fillStyle = style.color;
  context.font = `${Math.min(14, lettered ? Math.max(10, cell) : 12)}px ${style.fontFamily}`;
  const every = lettered ? 1 : Math.ceil(12 / cell / 5) * 5;
  for (let k = 0; k < n; k += every) {
    const word = lettered ? words[k].slice(0, 11) : String(k + 1), middle = (k + 0.5) * cell;
    context.textAlign = "right";
    context.fillText(word, room - 5, middle + 4, room - 8);
    context.save();
    context.translate(room + middle + 4, side + 5);
    context.rotate(-Math.PI / 2);
    context.fillText(word, 0, 0, room - 8);
    context.restore();
  }
}

import { circle, clamp, line, many, mount, place, say, text } from "./kit.js";
import { averaging, effectiveResistance, openingEdge, potentials } from "./mathematics.js";

const MOST = 18;
const ring = (n, cx, cy, r, turn = 0) =>
  Array.from({ length: n }, (_, k) => [
    cx + r * Math.cos(2 * Math.PI * (k / n) + turn),
    cy + r * Math.sin(2 * Math.PI * (k / n) + turn),
  ]);
const clique = (nodes) => nodes.flatMap((u, k) => nodes.slice(k + 1).map((v) => [u, v]));
const chain = (n) => Array.from({ length: n - 1 }, (_, k) => [k, k + 1]);
const five = [0, 1, 2, 3, 4];
const GRAPHS = {
  tree: {
    label: "a tree with 8 leaves",
    source: 7,
    target: 0,
    places: [
      [0.5, 0.06],
      ...[0.25, 0.75].map((x) => [x, 0.34]),
      ...[0, 1, 2, 3].map((k) => [0.125 + k / 4, 0.64]),
      ...Array.from({ length: 8 }, (_, k) => [0.0625 + k / 8, 0.94]),
    ],
    edges: Array.from({ length: 14 }, (_, k) => [Math.floor(k / 2), k + 1]),
  },
  barbell: {
    label: "two cliques and a bridge",
    source: 2,
    target: 7,
    places: [...ring(5, 0.22, 0.5, 0.2), ...ring(5, 0.78, 0.5, 0.2, Math.PI)].map(([x, y]) => [
      x,
      0.5 + (y - 0.5) * 1.7,
    ]),
    edges: [...clique(five), ...clique(five.map((k) => k + 5)), [0, 5]],
  },
  path: {
    label: "a path",
    source: 0,
    target: 8,
    places: Array.from({ length: 9 }, (_, k) => [0.05 + k * 0.1125, 0.5 + 0.18 * Math.sin(k * 1.3)]),
    edges: chain(9),
  },
  cycle: {
    label: "a cycle",
    source: 0,
    target: 6,
    places: ring(12, 0.5, 0.5, 0.42).map(([x, y]) => [0.5 + (x - 0.5) * 0.8, y]),
    edges: [...chain(12), [0, 11]],
  },
};
const written = (edges) => edges.map(([u, v]) => `${Math.min(u, v)}-${Math.max(u, v)}`).join(".");
const pairs = (s) => (s.edges ? s.edges.split(".").map((e) => e.split("-").map(Number)) : []);
const set = (name) => ({
  graph: name,
  xs: GRAPHS[name].places.map(([x]) => x),
  ys: GRAPHS[name].places.map(([, y]) => y),
  edges: written(GRAPHS[name].edges),
  source: GRAPHS[name].source,
  target: GRAPHS[name].target,
  picked: -1,
  opened: "",
});
const matrix = (s) => {
  const a = s.xs.map(() => s.xs.map(() => 0));
  for (const [u, v] of pairs(s)) a[u][v] = a[v][u] = 1;
  return a;
};
/** All nodes that a way leads to from `node`. */
const reached = (a, node) => {
  const found = [node];
  for (const u of found) a[u].forEach((on, v) => { if (on && !found.includes(v)) found.push(v); });
  return found;
};
const hops = (a, from, to) => {
  const far = a.map(() => Infinity);
  far[from] = 0;
  const queue = [from];
  for (const u of queue)
    a[u].forEach((on, v) => {
      if (on && far[v] === Infinity) {
        far[v] = far[u] + 1;
        queue.push(v);
      }
    });
  return far[to];
};
/** What every node holds of every other's first state after some hops; between two hops on the line between them. */
const shares = (s) => {
  const p = averaging(matrix(s));
  let now = p.map((_, i) => p.map((__, j) => Number(i === j)));
  for (let k = 0; k < Math.floor(s.hops); k += 1)
    now = p.map((row) => now[0].map((_, j) => row.reduce((sum, x, i) => sum + x * now[i][j], 0)));
  const part = s.hops - Math.floor(s.hops);
  if (!part) return now;
  return p.map((row, i) =>
    now[i].map((x, j) => (1 - part) * x + part * row.reduce((sum, y, k) => sum + y * now[k][j], 0)),
  );
};
/** Who speaks in colour: the leaves, or where there are none, every node but the reader. */
const speakers = (s) => {
  const degrees = matrix(s).map((row) => row.reduce((sum, x) => sum + x, 0));
  const leaves = degrees.flatMap((d, k) => (d === 1 && k !== s.target ? [k] : []));
  return leaves.length > 2 ? leaves : degrees.flatMap((_, k) => (k !== s.target ? [k] : []));
};
const ARRIVED = 1e-9; // of the reader's state: less is a voice that has not arrived
/** The voices that have arrived at the reader: how many, of how many, the share of all, and of that the strongest's and the weakest's. */
const voices = (s, held) => {
  const own = speakers(s).map((k) => held[s.target][k]);
  const arrived = own.filter((x) => x > ARRIVED);
  const total = arrived.reduce((sum, x) => sum + x, 0);
  return {
    all: own.length,
    count: arrived.length,
    total,
    strongest: Math.max(0, ...arrived) / (total || 1),
    weakest: Math.min(1, ...arrived) / (total || 1),
  };
};
const even = (found) => found.strongest - found.weakest < 0.01;
const joined = (a) => reached(a, 0).length === a.length;
/** The resistance between every two nodes, added up. */
const resistances = (s) => effectiveResistance(matrix(s)).flat().reduce((sum, x) => sum + x, 0) / 2;
const without = (s) => ({ ...s, edges: s.edges.split(".").filter((edge) => edge !== s.opened).join(".") });
const hue = (k, n) => {
  const channel = (shift) => {
    const t = ((((k / n) * 6 + shift) % 6) + 6) % 6;
    return clamp(Math.abs(t - 3) - 1, 0, 1) * 0.8 + 0.06;
  };
  return [channel(0), channel(4), channel(2)];
};
const mixed = (parts) => {
  const total = parts.reduce((sum, [share]) => sum + share, 0);
  if (total < 1e-6) return "none";
  const light = [0, 1, 2].map((c) => parts.reduce((sum, [share, colour]) => sum + share * colour[c], 0) / total);
  return `rgb(${light.map((x) => Math.round(255 * (x <= 0.0031308 ? 12.92 * x : 1.055 * x ** (1 / 2.4) - 0.055))).join(",")})`;
};
const flow = (s) => {
  const a = matrix(s);
  const inside = reached(a, s.source);
  if (!inside.includes(s.target) || s.source === s.target) return null;
  const p = potentials(inside.map((u) => inside.map((v) => a[u][v])));
  const [i, j] = [inside.indexOf(s.source), inside.indexOf(s.target)];
  const level = Object.fromEntries(inside.map((u, k) => [u, p[k][i] - p[k][j]]));
  return { level, resistance: level[s.source] - level[s.target] };
};

const layout = (w) => {
  const wide = w >= 560;
  const plane = wide ? { x: 24, y: 26, w: w - 250, h: 270 } : { x: 22, y: 26, w: w - 44, h: 270 };
  return { wide, plane, note: wide ? { x: w - 196, y: 60 } : { x: 4, y: 352 }, height: wide ? 332 : 520 };
};
const join = (s, u, v) => {
  const own = written([[u, v]]);
  const now = s.edges ? s.edges.split(".") : [];
  return {
    edges: (now.includes(own) ? now.filter((e) => e !== own) : [...now, own]).join("."),
    picked: -1,
    opened: "",
  };
};

export const render = mount({
  name: "squash",
  when: (s) => [s.view],
  words: { reader: "target", root: "target", source: "source", leaves: "speakers", edge: "edges", bridge: "edges" },
  start: () => ({ ...set("tree"), view: "colours", tool: "join", hops: 3 }),
  tidy: (s) => {
    if (Math.min(s.xs.length, s.ys.length) < 2) s = { ...s, ...set("tree") };
    const n = Math.min(s.xs.length, s.ys.length, MOST);
    const node = (k) => clamp(Math.round(k) || 0, 0, n - 1);
    return {
      ...s,
      xs: s.xs.slice(0, n).map((x) => clamp(x, 0, 1)),
      ys: s.ys.slice(0, n).map((y) => clamp(y, 0, 1)),
      edges: [
        ...new Set(
          pairs(s)
            .filter(([u, v]) => u >= 0 && v > u && v < n)
            .map((e) => written([e])),
        ),
      ].join("."),
      source: node(s.source),
      target: node(s.target),
      hops: clamp(s.hops, 0, 16),
      picked: s.picked < n ? Math.round(s.picked) : -1,
      view: ["colours", "share", "current"].includes(s.view) ? s.view : "colours",
      tool: ["join", "source", "target"].includes(s.tool) ? s.tool : "join",
      graph: Object.hasOwn(GRAPHS, s.graph) ? s.graph : "own",
      opened: s.edges.split(".").includes(s.opened) ? s.opened : "",
    };
  },
  controls: () => [
    { kind: "choice", key: "graph", label: "graph", options: [...Object.entries(GRAPHS).map(([key, { label }]) => [key, label]), ["own", "one of your own"]], pick: (name) => (name in GRAPHS ? set(name) : { graph: "own" }) },
    { kind: "choice", key: "view", label: "look at", options: [["colours", "colours that mix"], ["share", "the source's share"], ["current", "current and resistance"]] },
    { key: "hops", label: "hops", min: 0, max: 16, step: 1, show: (x) => String(Math.round(x)), hidden: (s) => s.view === "current" },
    { kind: "play", label: "Hop", restart: { hops: 0 }, step: (s, seconds) => (s.hops >= 16 ? null : { hops: Math.min(16, s.hops + 1.2 * seconds) }), hidden: (s) => s.view === "current" },
    { kind: "choice", key: "tool", label: "a click", options: [["join", "joins two nodes, or cuts"], ["source", "makes the source"], ["target", "makes the reader"]], pick: (tool) => ({ tool, picked: -1 }) },
    {
      kind: "button", label: (s) => (s.xs.length > 1 && joined(matrix(s)) && !openingEdge(matrix(s)) ? "No edge lowers the total resistance" : "The edge that lowers the total resistance most"),
      ms: 1, off: (s) => !joined(matrix(s)) || !openingEdge(matrix(s)),
      press: (s) => { const edge = openingEdge(matrix(s)); return edge ? { ...join(s, ...edge), graph: "own", opened: written([edge]) } : {}; },
    },
    { kind: "button", label: "Add a node", ms: 1, off: (s) => s.xs.length >= MOST, press: (s) => ({ xs: [...s.xs, 0.5], ys: [...s.ys, 0.5], edges: [s.edges, `${s.target}-${s.xs.length}`].filter(Boolean).join("."), graph: "own", opened: "" }) },
  ],
  height: (w) => layout(w).height,
  items: (s, data, w) => {
    const { plane } = layout(w);
    return s.xs.map((x, k) => ({
      id: `node${k}`,
      x: plane.x + x * plane.w,
      y: plane.y + s.ys[k] * plane.h,
      r: 19,
      bare: true,
      role: "button",
      pressed: s.picked === k,
      label: `node ${k + 1}${k === s.source ? ", the source" : ""}${k === s.target ? ", the reader" : ""}. Enter ${s.tool === "join" ? (s.picked >= 0 && s.picked !== k ? `joins it to node ${s.picked + 1}, or cuts` : "picks it") : `makes it the ${s.tool === "source" ? "source" : "reader"}`}, arrows move it`,
      drag: (px, py, now) => ({
        xs: now.xs.map((old, i) => (i === k ? clamp((px - plane.x) / plane.w, 0, 1) : old)),
        ys: now.ys.map((old, i) => (i === k ? clamp((py - plane.y) / plane.h, 0, 1) : old)),
      }),
      press: (now) => {
        if (now.tool === "source") return { source: k, target: now.target === k ? now.source : now.target };
        if (now.tool === "target") return { target: k, source: now.source === k ? now.target : now.source };
        if (now.picked < 0 || now.picked === k) return { picked: now.picked === k ? -1 : k };
        return { ...join(now, now.picked, k), graph: "own" };
      },
      key: (step, now, _, key) => {
        const [dx, dy] = {
          ArrowRight: [0.03, 0],
          ArrowLeft: [-0.03, 0],
          ArrowUp: [0, -0.03],
          ArrowDown: [0, 0.03],
        }[key] ?? [0, 0];
        return {
          xs: now.xs.map((old, i) => old + (i === k ? dx : 0)),
          ys: now.ys.map((old, i) => old + (i === k ? dy : 0)),
        };
      },
    }));
  },
  picture: (s, data, w) => {
    const { plane, note } = layout(w);
    const at = (k) => [plane.x + s.xs[k] * plane.w, plane.y + s.ys[k] * plane.h];
    const known = GRAPHS[s.graph] ? null : Object.values(GRAPHS).find(({ places }) => places.length === s.xs.length);
    const old = known ? written(known.edges).split(".") : null;
    const held = shares(s);
    const current = s.view === "current" ? flow(s) : null;
    const edges = pairs(s).map(([u, v]) => {
      const fresh = old && !old.includes(`${u}-${v}`);
      const base = line(...at(u), ...at(v), fresh ? "green thick" : "grey thin", "edges");
      if (!current || !(u in current.level)) return base;
      const amperes = current.level[u] - current.level[v];
      const [from, to] = amperes > 0 ? [u, v] : [v, u];
      if (Math.abs(amperes) < 0.004) return base;
      return (
        base +
        line(...at(from), ...at(to), "blue low", "edges").replace(
          "/>",
          ` style="stroke-width:${place(16 * Math.abs(amperes)) + 1}"/>`,
        ) +
        line(...at(from), ...at(to), "blue moving", "edges").replace(
          "/>",
          ` style="stroke-width:${place(6 * Math.abs(amperes)) + 1.5}"/>`,
        )
      );
    });
    const own = speakers(s);
    const colours = Object.fromEntries(own.map((k, i) => [k, hue(i, own.length)]));
    const ranked = current ? Object.values(current.level) : [];
    const disc = (k) => {
      const [x, y] = at(k);
      const parts = own.map((j) => [held[k][j], colours[j]]);
      const total = parts.reduce((sum, [share]) => sum + share, 0);
      const inner = {
        colours: () =>
          total > 1e-4
            ? circle(x, y, 17 * Math.sqrt(total), "").replace("/>", ` style="fill:${mixed(parts)}"/>`)
            : "",
        share: () =>
          held[k][s.source] > 1e-5 ? circle(x, y, 17 * Math.sqrt(held[k][s.source]), "fblue") : "",
        current: () =>
          current && k in current.level
            ? circle(
                x,
                y,
                3 + 13 * Math.sqrt((current.level[k] - Math.min(...ranked)) / (current.resistance || 1)),
                "fblue",
              )
            : "",
      }[s.view]();
      const ringed =
        k === s.picked
          ? "green fat"
          : k === s.target
            ? "ink thick"
            : k === s.source
              ? "orange thick"
              : "grey thin";
      const part =
        k === s.target ? "target" : k === s.source ? "source" : own.includes(k) ? "speakers" : "nodes";
      const word = k === s.target ? "reader" : k === s.source ? "source" : "";
      return `<g data-part="${part}">${circle(x, y, 17.5, "fground")}${inner}${circle(x, y, 17.5, ringed)}${text(x, y + 35, word, "small bold mid halo")}</g>`;
    };
    const reader = own.map((j) => [held[s.target][j], colours[j]]);
    const heard = voices(s, held);
    const lines = {
      colours: () => [
        circle(note.x + 34, note.y + 20, 34, "grey thin").replace("/>", ` style="fill:${mixed(reader)}"/>`),
        text(note.x + 80, note.y + 16, "the reader's", "small"), text(note.x + 80, note.y + 34, "colour", "small"),
        text(note.x, note.y + 82, heard.count ? `${say(100 * heard.total, 2)}% of its state` : "nothing yet", "bold"),
        ...(heard.count ? [
          text(note.x, note.y + 103, `is from ${heard.count} of ${heard.all} colours;`, "small quiet"),
              text(
                note.x,
                note.y + 134,
                heard.count === 1
                  ? "all of that"
                  : even(heard)
                    ? "equal parts"
                    : `${say(100 * heard.strongest, 2)}% of that`,
                "bold",
              ),
              text(
                note.x,
                note.y + 155,
                even(heard) && heard.count > 1
                  ? `of ${say(100 * heard.strongest, 3)}% each`
                  : heard.count === 1
                    ? "is from one colour"
                    : "is from the strongest",
                "small quiet",
              ),
            ]
          : []),
      ],
      share: () => [
        text(note.x, note.y + 24, `${say(100 * held[s.target][s.source], 2)}%`, "big"),
        text(note.x, note.y + 48, "of the reader's state", "small"),
        text(note.x, note.y + 67, "is from the source", "small"),
        text(
          note.x,
          note.y + 98,
          `${many(hops(matrix(s), s.source, s.target), "hop")} away`.replace(
            "Infinity hops away",
            "no way leads there",
          ),
          "small quiet",
        ),
      ],
      current: () => [
        text(note.x, note.y + 24, current ? `${say(current.resistance, 3)} ohm` : "no way", "big"),
        text(note.x, note.y + 48, "from source to reader,", "small"),
        text(note.x, note.y + 67, "each edge one ohm", "small"),
        text(note.x, note.y + 98, "width: the current", "small quiet"),
      ],
    }[s.view]();
    return [...edges, ...s.xs.map((_, k) => disc(k)), ...lines].join("");
  },
  sentence: (s) => {
    const t = Math.round(s.hops);
    const after = `After ${many(t, "hop")}`;
    const held = shares({ ...s, hops: t });
    // what the button has done: a lower total, and for this reader perhaps less
    const opened =
      s.opened && joined(matrix(without(s)))
        ? ` The new edge lowers the total resistance of all pairs: ${say(resistances(without(s)), 3)} → ${say(resistances(s), 3)} ohms.`
        : "";
    if (s.view === "current") {
      const found = flow(s);
      return found
        ? `One ampere from source to reader needs ${say(found.resistance, 3)} volts, so the resistance is ${say(found.resistance, 3)} ohms. A thick edge carries a large part of the current. An edge that carries all of it is a bottleneck.${opened}`
        : "No current can flow: no way leads from the source to the reader.";
    }
    if (s.view === "share")
      return `${after} of averaging with the neighbours, ${say(100 * held[s.target][s.source], 2)}% of the reader's state comes from the source.${opened}${opened && ` This share was ${say(100 * shares({ ...without(s), hops: t })[s.target][s.source], 2)}% before.`}`;
    const found = voices(s, held);
    if (!found.count) return `${after} no colour has reached the reader.${opened}`;
    const told = found.count === 1 ? `all of it one of the ${found.all}` : even(found)
      ? `${found.count === found.all ? `all ${found.all} colours` : `${found.count} of the ${found.all} colours`} in equal parts${found.count === found.all && found.all > 2 ? ". This mixture is grey, and no single colour can be recognised" : ""}`
      : `a mixture of ${found.count === found.all ? `all ${found.all} colours` : `${found.count} of the ${found.all} colours`}, ${say(100 * found.strongest, 2)}% of it from the strongest`;
    return `${after} of averaging, ${say(100 * found.total, 2)}% of the reader's state is colour: ${told}.${opened}`;
  },
});
export default { render };

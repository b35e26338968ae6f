import { clamp, line, many, mount, path, place, said, say, text, toLink, verbatim } from "./kit.js";
import { cosineSum, softmax } from "./mathematics.js";

// The toy of the machine's stop on positions: states of 16 numbers are eight pairs; head 1 has the fast ones, head 2 the slow ones.
const [WIDTH, BASE, GAIN, MOST] = [16, 1e4, 6, 20];
const [FAST, SLOW] = [[0, 4], [4, 8]];
const LOOKS = ["blue", "purple"];

/** The words of a text, each Chinese character one of them. */
const split = (words) => words.match(/\p{Script=Han}|[^\s\p{Script=Han}]+/gu) ?? [];
const read = (s) => split(s.text).slice(0, MOST);
const plain = (word) => word.toLowerCase().replace(/[^\p{L}\p{N}]/gu, "") || word;
/** The place of the word that looks back; the first token has place 0. */
const reader = (s) => clamp(read(s).length - Math.round(s.back), Math.min(1, read(s).length), read(s).length);
/** Where the reader's own word stands before it. */
const earlier = (s) => {
  const [words, i] = [read(s).map(plain), reader(s)];
  return words.slice(0, Math.max(0, i - 1)).flatMap((word, j) => (word === words[i - 1] ? [j + 1] : []));
};
/** The reader's attention weights in both heads: the toy's, or those stored of the real model. */
export const weights = (s, data) => {
  const [i, same] = [reader(s), earlier(s)];
  if (s.real) return data.maps.map((map) => map[i]);
  const far = Array.from({ length: i + 1 }, (_, j) => i - j);
  return [
    softmax(far.map((d) => GAIN * (cosineSum(d - 1, WIDTH, BASE, ...FAST) - 4))),
    softmax(far.map((d) => (same.includes(i - d) ? GAIN * cosineSum(d, WIDTH, BASE, ...SLOW) : 0))),
  ];
};

const layout = (s, w, h) => {
  const step = (w - 60) / Math.max(1, Math.min(MOST, read(s).length));
  return { bottom: h - 92, x: (token) => 22 + token * step };
};
const arc = (from, to, bottom, high) => `M${place(from)} ${place(bottom)}C${place(from)} ${place(bottom - high)} ${place(to)} ${place(bottom - high)} ${place(to)} ${place(bottom)}`;
const percent = (x) => `${say(100 * x, 2)}%`;
const names = (s, data) =>
  s.real
    ? data.heads.map(([layer, head]) => `layer ${layer}, head ${head}`)
    : ["head 1: the word before", "head 2: the same word, earlier"];

/** The card that is sent on, 1200 × 630: the row of ones, both answers, and what the reader's words give. */
const card = (s, data, family) => {
  const canvas = Object.assign(document.createElement("canvas"), { width: 1200, height: 630 });
  const pen = canvas.getContext("2d");
  const put = (words, x, y, font, fill) => {
    Object.assign(pen, { font: `${font} ${family}`, fillStyle: fill });
    pen.fillText(words, x, y, 1080);
  };
  Object.assign(pen, { fillStyle: "#fff" });
  pen.fillRect(0, 0, 1200, 630);
  for (let k = 0; k < data.ones; k += 1)
    put("1", 60 + 13.6 * (k % 79), 60 + 30 * Math.floor(k / 79), "24px", "#555");
  put(said("How many ones are these?"), 60, 226, "600 44px", "#1a1a1a");
  const [mine, other] = answers(s, data).map(said);
  put(mine, 60, 300, "700 64px", "#0072b2");
  put(other, 60, 372, "700 64px", "#b24a00");
  const words = read(s);
  const x = (token) => 70 + (token * 1060) / Math.max(1, words.length);
  weights(s, data).forEach((row, head) =>
    row.forEach((weight, j) => {
      if (weight < 0.01) return;
      Object.assign(pen, { lineWidth: 12 * weight, strokeStyle: ["#0072b2", "#b0518d"][head] });
      pen.stroke(new Path2D(arc(x(j), x(reader(s)), 520, 20 + 100 * (head ? 1 : 0.7))));
    }),
  );
  words.forEach((word, j) => {
    pen.save();
    pen.translate(x(j + 1) - 6, 528);
    pen.rotate(Math.PI / 5);
    put(word, 0, 12, `${j + 1 === reader(s) ? 700 : 400} 23px`, j + 1 === reader(s) ? "#b24a00" : "#1a1a1a");
    pen.restore();
  });
  put(said("Connection Bottlenecks in Attention"), 60, 616, "400 22px", "#555");
  return canvas.toDataURL("image/png");
};
const answers = (s, data) => [
  s.guess ? `I guessed ${s.guess}.` : "I have not guessed yet.",
  `${data.asked} said ${data.answer}.`,
];

export const render = mount({
  name: "yours",
  words: {},
  start: (data) => ({ text: data.text, back: 0, real: false, guess: 0 }),
  tidy: (s, data) => ({
    ...s,
    text: s.text.slice(0, 400),
    back: clamp(s.back, 0, Math.max(0, split(s.text).slice(0, MOST).length - 1)),
    real: s.real && s.text.trim() === data.text,
    guess: clamp(Math.round(s.guess), 0, 999),
  }),
  controls: (data) => [
    { kind: "words", key: "text", label: "your words, 20 at most" },
    { kind: "switch", key: "real", label: "weights of SmolLM2-135M", off: (s) => s.text.trim() !== data.text },
    {
      kind: "button",
      label: "the course's words",
      press: () => ({ text: data.text, back: 0 }),
      off: (s) => s.text.trim() === data.text,
    },
  ],
  when: (s, data) => [s.text.trim() === data.text ? "stored" : "own"],
  height: (w) => (w >= 520 ? 300 : 280),
  items: (s, data, w, h) => {
    const [v, words, i] = [layout(s, w, h), read(s), reader(s)];
    if (!words.length) return [];
    const nearest = (x) => ({
      back:
        words.length - clamp(Math.round((x - v.x(0)) / (v.x(1) - v.x(0))), 1, words.length),
    });
    return [
      { id: "row", area: [0, v.bottom - 4, w, 90], flat: true, drag: nearest },
      {
        id: "reader",
        x: v.x(i),
        y: v.bottom,
        r: 20,
        knob: 6,
        look: "orange",
        flat: true,
        label: "word that looks back",
        range: [i, 1, words.length],
        value: `word ${i}`,
        drag: nearest,
        key: (step) => ({ back: words.length - clamp(i + step, 1, words.length) }),
      },
    ];
  },
  picture: (s, data, w, h) => {
    const [v, words, i, rows] = [layout(s, w, h), read(s), reader(s), weights(s, data)];
    const arcs = rows.map((row, head) =>
      row
        .map((weight, j) => {
          const high = (head ? 1 : 0.72) * Math.min(v.bottom - 56, 34 + 0.62 * (v.x(i) - v.x(j)));
          const way = j === i ? `M${place(v.x(i))} ${place(v.bottom)}v${head ? -30 : -22}` : arc(v.x(j), v.x(i), v.bottom, high * 1.3);
          return weight < 0.005
            ? ""
            : path(way, LOOKS[head], `head${head + 1}`, `data-token="${j}" style="stroke-width:${Math.round(1200 * weight) / 100}"`);
        })
        .join(""),
    );
    // the largest weight of each head, at the token that gets it
    const shares = rows.map((row, head) => {
      const j = row.indexOf(Math.max(...row));
      return row.length > 1 ? text(v.x(j), v.bottom - 14 - 20 * head, percent(row[j]), `small bold mid halo`, `head${head + 1}`) : "";
    });
    const signs = words.map((word, k) =>
      verbatim(v.x(k + 1) - 4, v.bottom + 18, word.length > 11 ? `${word.slice(0, 10)}…` : word, k + 1 === i ? "bold" : "small", "", `transform="rotate(50 ${place(v.x(k + 1) - 4)} ${place(v.bottom + 18)})"`),
    );
    const heads = names(s, data).map((name, head) =>
      line(8, 14 + 22 * head, 30, 14 + 22 * head, `${LOOKS[head]} thick`) + text(38, 19 + 22 * head, name, "small"),
    );
    return [line(v.x(0), v.bottom, v.x(words.length), v.bottom, "faint"), ...arcs, text(v.x(0), v.bottom + 20, "•", "mid bold"), ...signs, ...shares, ...heads].join("");
  },
  sentence: (s, data) => {
    const [words, i, same, rows] = [read(s), reader(s), earlier(s), weights(s, data)];
    if (!words.length) return "Type some words.";
    const sum = same.reduce((found, j) => found + rows[1][j], 0);
    const [one, two] = s.real ? names(s, data).map((name) => name.replace("l", "L")) : ["Head 1", "Head 2"];
    const before = i === 1 ? "the first token" : "the word before";
    const second =
      same.length === 1
        ? `${two} gives the same word, ${many(i - same[0], "word")} back, ${percent(sum)}.`
        : same.length
          ? `${two} gives the same word, at ${same.length} places before, ${percent(sum)}.`
          : s.real
            ? `${two} finds no such word before and gives the first token ${percent(rows[1][0])}.`
            : `${two} finds no such word before, so each token gets ${percent(rows[1][0])}.`;
    const more = split(s.text).length > MOST ? ` Only the first ${MOST} words are read.` : "";
    return `${one} gives ${before} ${percent(rows[0][i - 1])} of its attention. ${second}${more}`;
  },
  notes: (data) => [
    ...answers({ guess: 200 }, data),
    ...answers({ guess: 0 }, data),
    ...SHARING,
    "chapters/",
    "Whoever sent you this guessed 200.",
    "Connection Bottlenecks in Attention",
    "How many ones are these?",
  ],
  lands: (s) => s.guess && document.querySelector(".guess") && document.querySelector("h1"),
  live: (hand, figure, on, home) => {
    const field = /** @type {HTMLInputElement | null} */ (document.querySelector(".guess input"));
    if (hand.state.guess)
      field
        ?.closest("p")
        .insertAdjacentHTML("afterend", `<p>${said(`Whoever sent you this guessed ${hand.state.guess}.`)}</p>`);
    const model = figure.querySelector(".yours-model");
    if (model && home) model.href = `${home}${said("chapters/")}try.html`;
    if (!home) return;
    const [share, link, download] = SHARING.map(said);
    figure
      .querySelector(".drawing-here")
      .insertAdjacentHTML(
        "beforeend",
        `<div class="drawing-controls yours-share"><button type="button">${share}</button><span hidden></span></div>`,
      );
    const [button, made] = figure.querySelector(".yours-share").children;
    // once there is something of the reader's to share
    const offer = () => {
      const theirs = Number(field?.value) || hand.state.guess || hand.state.text.trim() !== hand.data.text;
      button.closest(".yours-share").hidden = !theirs;
    };
    on(figure, "painted", offer);
    if (field) on(field, "change", offer);
    offer();
    on(button, "click", () => {
      const state = { ...hand.state, guess: Number(field?.value) || 0 };
      const address = `${new URL(`${home}${said("chapters/")}welcome.html`, location.href)}${toLink("yours", state)}`;
      const [picture, alt] = [
        card(state, hand.data, getComputedStyle(figure).fontFamily),
        answers(state, hand.data).map(said).join(" "),
      ];
      if (field) history.replaceState(null, "", toLink("yours", state));
      made.hidden = false;
      made.innerHTML = `<label>${link} <input type="text" readonly></label> <a download="ones.png">${download}</a><img>`;
      made.querySelector("input").value = address;
      made.querySelector("a").href = picture;
      Object.assign(made.querySelector("img"), { src: picture, alt });
      made.querySelector("input").select();
      navigator.clipboard?.writeText(address).catch(() => {}); // where the browser allows none, the field has it
    });
  },
});
const SHARING = ["Share your guess and your words", "Address to send", "Download the card"];
export default { render };

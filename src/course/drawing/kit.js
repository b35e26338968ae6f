// What all drawings share: one state, painted anew at each change; things to drag; native controls; a sentence; a link.
/** @type {(x: number) => number} */
export const place = (x) => (Number.isFinite(x) ? Math.round(x * 10) / 10 : 0);
const escape = (text) =>
  String(text).replace(/[&<>"]/g, (c) => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" })[c]);
const still = () => matchMedia("(prefers-reduced-motion: reduce)").matches;

// Another language: a table of words as `helpers.words` has it, `{}` for a number, `{a}` for words that are looked up in turn.
const NUMBER = "[+−-]?\\d[\\d,]*(?:\\.\\d+)?(?: × 10[⁻⁰¹²³⁴⁵⁶⁷⁸⁹]+)?%?";
let entries = [];
/** What was to be said and no entry had. */
export const missing = new Set();
/** Say and draw in the words of a table from now on. */
export const speak = (table) => {
  entries = Object.entries(table ?? {}).map(([english, other]) => {
    const names = [...english.matchAll(/\{(\w*)\}/g)].map((hole) => hole[1]);
    const parts = english.split(/\{\w*\}/).map((part) => part.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"));
    return [
      new RegExp(
        `^${parts.map((part, k) => (k ? `(${names[k - 1] ? ".+?" : NUMBER})` : "") + part).join("")}$`,
      ),
      names,
      other,
    ];
  });
};
/** A text in the words of the table; as it is where there is none. */
export const said = (words) => {
  if (!entries.length || !/[A-Za-z]{2}/.test(words)) return words;
  for (const [pattern, names, other] of entries) {
    const found = pattern.exec(words)?.slice(1);
    if (!found) continue;
    const numbers = found.filter((_, k) => !names[k]);
    let next = 0;
    return other.replace(/\{(\w*)\}/g, (_, name) =>
      !name ? numbers[next++] : /\d/.test(name) ? numbers[name] : said(found[names.indexOf(name)]),
    );
  }
  missing.add(words);
  return words;
};
/** The same, sentence by sentence. */
export const tell = (words) =>
  entries.length
    ? words
        .replace(/([.?]) (?=[A-Z])/g, "$1\n")
        .split("\n")
        .map(said)
        .join("")
    : words;

// Pieces of a picture, as text. `name` is a list of classes; "ink", "blue" and their kind are colours.
const part = (name, lit) => `class="${name}"${lit ? ` data-part="${lit}"` : ""}`;
export const line = (x1, y1, x2, y2, name, lit) =>
  `<line x1="${place(x1)}" y1="${place(y1)}" x2="${place(x2)}" y2="${place(y2)}" ${part(name, lit)}/>`;
export const circle = (x, y, r, name, lit) =>
  `<circle cx="${place(x)}" cy="${place(y)}" r="${place(r)}" ${part(name, lit)}/>`;
export const box = (x, y, w, h, name, lit, more = "") =>
  `<rect x="${place(x)}" y="${place(y)}" width="${Math.max(0, place(w))}" height="${Math.max(0, place(h))}" ${part(name, lit)} ${more}/>`;
/** @type {(d: string, name?: string, lit?: any, more?: string) => string} */
export const path = (d, name, lit, more = "") => `<path d="${d}" ${part(name, lit)} ${more}/>`;
/** @type {(points: number[][], name?: string, lit?: any) => string} */
export const curve = (points, name, lit) =>
  path(`M${points.map(([x, y]) => `${place(x)} ${place(y)}`).join("L")}`, name, lit);
/** A reader's own words, which no table has. @type {(x: number, y: number, words: string | number, name?: string, lit?: any, more?: string) => string} */
export const verbatim = (x, y, words, name = "", lit, more = "") =>
  `<text x="${place(x)}" y="${place(y)}" ${part(name, lit)}${more && ` ${more}`}>${escape(words)}</text>`;
/** @type {(x: number, y: number, words: string | number, name?: string, lit?: any) => string} */
export const text = (x, y, words, name = "", lit) => verbatim(x, y, said(words), name, lit);

/** A number in few characters, with a true minus and powers of ten. @type {(x: number, digits?: number) => string} */
export const say = (x, digits = 3) => {
  if (x === 0) return "0";
  const size = Math.abs(x);
  if (size >= 1e-3 && size < 1e6) {
    const rounded = Number(x.toPrecision(digits));
    return (size >= 1000 ? Math.round(x).toLocaleString("en-US") : String(rounded)).replace("-", "−");
  }
  const [front, power] = x.toExponential(digits - 1).split("e");
  const raised = [...String(Number(power))].map((c) => "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"["-0123456789".indexOf(c)]).join("");
  return `${front.replace("-", "−")} × 10${raised}`;
};

/** "1 token", "2 tokens". @type {(count: number, one: string) => string} */
export const many = (count, one) => `${count} ${one}${count === 1 ? "" : "s"}`;

/**
 * Return the linear function that maps the interval `from` to the interval `to`, each given as [low, high].
 * @type {(from: number[], to: number[]) => (x: number) => number}
 */
export const scale = ([a, b], [c, d]) => (x) => c + ((x - a) / (b - a)) * (d - c);
/** @type {(x: number, low: number, high: number) => number} */
export const clamp = (x, low, high) => Math.min(high, Math.max(low, x));

const written = (value) =>
  Array.isArray(value)
    ? value.map(written).join(",")
    : typeof value === "number"
      ? String(Number(value.toPrecision(6)))
      : String(value);
const read = (like, value) => {
  if (Array.isArray(like))
    return value === "" ? [] : value.split(",").map((item) => read(like.length ? like[0] : 0, item));
  if (typeof like === "number") return Number.isFinite(Number(value)) ? Number(value) : like;
  return typeof like === "boolean" ? value === "true" : value;
};
/** The state in a link, `#drawing=clocks&distance=12`, and back. @type {(name: string, state: Record<string, any>) => string} */
export const toLink = (name, state) =>
  `#${new URLSearchParams({ drawing: name, ...Object.fromEntries(Object.entries(state).map(([k, v]) => [k, written(v)])) })}`;
/** @type {(name: string, state: Record<string, any>, hash: string) => Record<string, any> | null} */
export const fromLink = (name, state, hash) => {
  const found = new URLSearchParams(hash.replace(/^#/, ""));
  if (found.get("drawing") !== name) return null;
  return Object.fromEntries(Object.entries(state).map(([k, v]) => [k, found.has(k) ? read(v, found.get(k)) : v]));
};

const between = (a, b, share) => {
  if (typeof a === "number" && typeof b === "number") return a + (b - a) * share;
  if (Array.isArray(a) && Array.isArray(b) && a.length === b.length) return a.map((x, k) => between(x, b[k], share));
  return b;
};

const KEYS = { ArrowRight: 1, ArrowUp: 1, ArrowLeft: -1, ArrowDown: -1, PageUp: 10, PageDown: -10 };
// The keys that stay with what has the focus, by its type or role; a deck has all others, PageDown of every clicker first.
const STEPS = ["ArrowRight", "ArrowUp", "ArrowLeft", "ArrowDown", "Home", "End"];
const PRESS = [" ", "Enter"];
const NOTEBOOK = ".jp-Notebook, #notebook-container";
const OWN = {
  range: STEPS,
  slider: [...STEPS, ...PRESS],
  "select-one": [...STEPS, ...PRESS],
  checkbox: PRESS,
  button: PRESS,
  link: PRESS,
};

/**
 * Make the function `render({ model, el })` of a drawing, as anywidget expects it, from a specification of the drawing.
 * The specification has the drawing's name, start(data), which returns the initial state, controls(data),
 * items(state, data, w, h), picture(state, data, w, h), which returns SVG as text, height(w), sentence(state, data), and
 * `words`, the names of the drawing's parts. Some functions are optional. `tidy(state, data)` keeps a state from a link
 * within bounds. `lands(state)` returns the element to which such a link scrolls, if this is not the drawing.
 * `live(hand, figure, on, home)` connects the drawing to its page. `when(state)` returns the names under which pieces of
 * the text below the drawing (`data-when`) are shown. The model has `title`, `alt`, `data` and `state`.
 */
export const mount = (spec) => Object.assign(({ model, el }) => {
  const data = model.get("data") ?? {};
  speak(model.get("words"));
  const first = { ...spec.start(data), ...(model.get("state") ?? {}) };
  const tidy = (next) => (spec.tidy ? spec.tidy(next, data) : next);
  let state = tidy(fromLink(spec.name, first, location.hash) ?? first);
  let [w, h, lit, waiting, running] = [720, 360, null, 0, 0];
  const off = [];
  const on = (target, kind, call, options) => {
    target.addEventListener(kind, call, options);
    off.push(() => target.removeEventListener(kind, call, options));
  };

  // where the book is, seen from one of its pages; a notebook is none
  const home = location.pathname.match(/^(.*\/)(chapters|slides|drawings)\//);
  el.classList.add("drawing-body");
  el.dataset.lmSuppressShortcuts = "true"; // JupyterLab takes keys that are meant for an input
  el.innerHTML =
    `<div class="drawing-controls" role="group" aria-label="${escape(model.get("title"))}"></div>` +
    `<svg class="drawing-stage" role="group" aria-label="${escape(model.get("alt"))}"><g aria-hidden="true"></g><g></g></svg>` +
    '<p class="drawing-says" aria-live="polite"></p>';
  const [panel, stage, says] = el.children;
  const [picture, hands] = stage.children;
  const figure = el.closest("figure") ?? el;

  const set = (next) => {
    state = tidy({ ...state, ...next });
    waiting ||= requestAnimationFrame(paint);
  };
  const stop = () => {
    cancelAnimationFrame(running);
    running = 0;
    for (const button of panel.querySelectorAll("[data-playing]")) {
      delete button.dataset.playing;
      waiting ||= requestAnimationFrame(paint); // it says "▶" again
    }
  };
  const glide = (next, ms = 500) => {
    stop();
    if (still()) return set(next);
    const from = { ...state };
    const begun = performance.now();
    const step = (now) => {
      const share = clamp((now - begun) / ms, 0, 1);
      const eased = share * share * (3 - 2 * share);
      set(share < 1 ? Object.fromEntries(Object.entries(next).map(([k, v]) => [k, between(from[k], v, eased)])) : next);
      running = share < 1 ? requestAnimationFrame(step) : 0;
    };
    running = requestAnimationFrame(step);
  };
  /** Where a control that plays would be at the next whole number of what it moves. */
  const onward = (control) => {
    let next = {};
    for (let k = 0; k < 100; k += 1) {
      const more = control.step({ ...state, ...next }, 0.1, data);
      if (!more) break;
      next = more;
      const passed = Object.entries(next).filter(([key, value]) => Math.floor(value) > Math.floor(state[key]));
      if (passed.length) return Object.fromEntries(passed.map(([key, value]) => [key, Math.floor(value)]));
    }
    return next;
  };
  const hand = {
    get state() { return state; },
    data,
    // what a hand changes is seen whole
    set: (next) => { stop(); set("lit" in state ? { lit: "", ...next } : next); },
    glide,
  };

  // native controls
  const controls = (spec.controls?.(data) ?? []).map((control) => {
    const holder = document.createElement("div");
    const words = `<span>${escape(said(String(control.label)))}</span>`;
    const update = {
      range: () => {
        holder.innerHTML = `<label>${words}<input type="range" autocomplete="off" min="${control.min}" max="${control.max}" step="${control.step ?? 1}"></label><output aria-live="off"></output>`;
        const input = holder.querySelector("input");
        const [to, from] = [control.to ?? ((x) => x), control.from ?? ((x) => x)];
        on(input, "input", () => hand.set({ [control.key]: to(Number(input.value)) }));
        if (control.whole) // a key goes to the next whole number, however coarse the range is there
          on(input, "keydown", (event) => {
            const way = { ArrowRight: 1, ArrowUp: 1, ArrowLeft: -1, ArrowDown: -1 }[event.key];
            if (!way) return;
            event.preventDefault();
            hand.set({ [control.key]: Math.round(state[control.key]) + way });
          });
        return () => {
              const shown = said(
                control.show ? control.show(state[control.key], state) : say(state[control.key]),
              );
              if (
                document.activeElement !== input ||
                Math.abs(to(Number(input.value)) - state[control.key]) > 1e-9
              )
                input.value = from(state[control.key]);
          input.setAttribute("aria-valuetext", shown);
          input.disabled = Boolean(control.off?.(state, data));
          holder.querySelector("output").textContent = shown;
        };
      },
      choice: () => {
        holder.innerHTML = `<label>${words}<select autocomplete="off">${control.options.map(([value, name]) => `<option value="${escape(value)}">${escape(said(name))}</option>`).join("")}</select></label>`;
        const input = holder.querySelector("select");
            on(input, "change", () =>
              hand.set(
                control.pick ? control.pick(input.value, state, data) : { [control.key]: input.value },
              ),
            );
            return () => {
              input.value = state[control.key];
              input.disabled = Boolean(control.off?.(state, data));
            };
      },
      words: () => {
        holder.className = "drawing-words";
        holder.innerHTML = `<label>${words}<input type="text" autocomplete="off" maxlength="400"></label>`;
        const input = holder.querySelector("input");
        on(input, "input", () => hand.set({ [control.key]: input.value }));
        return () => {
          if (document.activeElement !== input) input.value = state[control.key];
        };
      },
      switch: () => {
        holder.innerHTML = `<label><input type="checkbox" autocomplete="off">${words}</label>`;
        const input = holder.querySelector("input");
        on(input, "change", () => hand.set({ [control.key]: input.checked }));
        return () => {
          input.checked = state[control.key];
          input.disabled = Boolean(control.off?.(state, data));
        };
      },
      button: () => {
        holder.innerHTML = '<button type="button"></button>';
        const button = holder.firstChild;
        on(button, "click", () => hand.glide(control.press(state, data), control.ms));
        return () => {
          button.textContent = said(typeof control.label === "function" ? control.label(state) : control.label);
          button.disabled = Boolean(control.off?.(state, data));
        };
      },
      steps: () => {
        holder.className = "drawing-steps";
            holder.innerHTML =
              control.options
                .map(
                  (name, k) =>
                    `<button type="button" aria-label="${k}: ${escape(said(name))}" title="${escape(said(name))}">${k}</button>`,
                )
                .join("") + '<output aria-live="off"></output>';
        const buttons = [...holder.querySelectorAll("button")];
        // a page that has a text for each step goes there instead
            const go = (k) => {
              if (figure.dispatchEvent(new CustomEvent("step", { detail: k, cancelable: true })))
                hand.glide({ [control.key]: k }, 900);
            };
        buttons.forEach((button, k) => on(button, "click", () => go(k)));
        on(holder, "keydown", (event) => {
          const way = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
          const next = buttons[buttons.indexOf(event.target) + way];
          if (!way) return;
          event.preventDefault();
          event.stopPropagation();
          if (!next) return;
          next.focus({ preventScroll: true });
          go(buttons.indexOf(next));
        });
        return () => {
          const now = Math.round(state[control.key]);
              buttons.forEach((button, k) =>
                k === now
                  ? button.setAttribute("aria-current", "step")
                  : button.removeAttribute("aria-current"),
              );
          holder.querySelector("output").textContent = said(control.options[now]);
        };
      },
      play: () => {
        holder.className = "drawing-play";
        holder.innerHTML = `<button type="button">▶ ${escape(said(control.label))}</button>`;
        const button = holder.firstChild;
        on(button, "click", () => {
          if (button.dataset.playing !== undefined) return stop();
          stop();
          if (!control.step(state, 0.01, data)) set(control.restart ?? {}); // it stands at its end
          if (still()) return set(onward(control)); // nothing moves by itself: a press is a step
          button.dataset.playing = "";
          let before = performance.now();
          const step = (now) => {
            const next = control.step(state, Math.min(0.1, (now - before) / 1000), data);
            before = now;
            if (!next) return stop();
            set(next);
            running = requestAnimationFrame(step);
          };
          running = requestAnimationFrame(step);
        });
        return () => {
          button.textContent = button.dataset.playing === undefined ? `▶ ${said(control.label)}` : `■ ${said("Stop")}`;
          button.disabled = Boolean(control.off?.(state, data));
        };
      },
    }[control.kind ?? "range"]();
    panel.append(holder);
    return () => {
      holder.hidden = Boolean(control.hidden?.(state, data));
      update();
    };
  });
  panel.hidden = controls.length === 0;

  // things in the picture that a hand can take
  const known = new Map();
  const make = (id) => {
    const group = document.createElementNS("http://www.w3.org/2000/svg", "g");
    group.dataset.id = id;
    group.classList.add("item");
    group.innerHTML = '<rect class="hit"/><circle class="hit"/><circle class="knob"/><title></title>';
    const at = (event) => new DOMPoint(event.clientX, event.clientY).matrixTransform(stage.getScreenCTM().inverse());
    const pull = (event, first) => {
      const { x, y } = at(event);
      const next = known.get(id).drag?.(x, y, state, data, first);
      if (next) hand.set(next);
    };
    const press = () => {
      const { press: call, ms, href } = known.get(id);
      if (href && home) window.open(home[1] + href, el.closest(".reveal") ? "_blank" : "_top");
      const next = call?.(state, data);
      if (next) ms ? hand.glide(next, ms) : hand.set(next);
    };
    let [held, moved, from] = [false, false, null];
    group.addEventListener("pointerdown", (event) => {
      if (event.button) return;
      [held, moved, from] = [true, false, event];
      if (!known.get(id).drag) return;
      group.setPointerCapture(event.pointerId);
      if (!known.get(id).press) pull(event, true);
      if (group.tabIndex >= 0) group.focus({ preventScroll: true });
      event.preventDefault();
    });
    group.addEventListener("pointermove", (event) => {
      if (!held || !known.get(id).drag) return;
          if (
            !moved &&
            known.get(id).press &&
            Math.hypot(event.clientX - from.clientX, event.clientY - from.clientY) < 5
          )
            return;
      moved = true;
      pull(event, false);
    });
        for (const kind of ["pointerup", "pointercancel", "lostpointercapture"])
          group.addEventListener(kind, () => {
            held = false;
          });
        group.addEventListener("click", () => {
          if (!moved) press();
        });
    group.addEventListener("keydown", (event) => {
      const item = known.get(id);
      if (event.key === "Enter" && item.href) press();
      else if ((event.key === "Enter" || event.key === " ") && item.press) press();
          else if ((event.key === "Enter" || event.key === " ") && item.enter)
            hand.set(item.enter(state, data) ?? {});
          else if (item.key && event.key in KEYS && !(event.key.startsWith("Page") && el.closest(".reveal")))
            hand.set(item.key(KEYS[event.key] * (event.shiftKey ? 10 : 1), state, data, event.key) ?? {});
          else if (item.key && (event.key === "Home" || event.key === "End"))
            hand.set(item.key(event.key === "Home" ? -Infinity : Infinity, state, data) ?? {});
      else return;
      event.preventDefault();
    });
    for (const kind of ["pointerenter", "focus", "pointerleave", "blur"])
          group.addEventListener(
            kind,
            () =>
              known.get(id)?.part &&
              light(["pointerenter", "focus"].includes(kind) ? known.get(id).part : null),
          );
    hands.append(group);
    return group;
  };
  const attribute = (node, name, value) => {
    if (value === undefined || value === null) node.removeAttribute(name);
    else if (node.getAttribute(name) !== String(value)) node.setAttribute(name, value);
  };
  const arrange = (items) => {
    const ids = new Set(items.map((item) => item.id));
        for (const group of [...hands.children])
          if (!ids.has(group.dataset.id)) {
            known.delete(group.dataset.id);
            group.remove();
          }
    for (const item of items) {
      known.set(item.id, item);
      const group = hands.querySelector(`[data-id="${item.id}"]`) ?? make(item.id);
      const [rect, ring, knob, title] = group.children;
      const named = said(item.title ?? "");
      if (title.textContent !== named) title.textContent = named;
      const area = item.area;
          for (const [name, value] of [
            ["x", area?.[0]],
            ["y", area?.[1]],
            ["width", area?.[2]],
            ["height", area?.[3]],
          ])
            attribute(rect, name, area ? place(value) : 0);
          for (const round of [ring, knob]) {
            attribute(round, "cx", place(item.x ?? 0));
            attribute(round, "cy", place(item.y ?? 0));
          }
          attribute(ring, "r", area ? 0 : (item.r ?? 18));
          attribute(knob, "r", area || item.bare ? 0 : (item.knob ?? 8));
          attribute(
            group,
            "class",
            `item ${item.look ?? ""} ${item.drag ? (item.flat ? "flat" : "free") : "still"}`,
          );
          const role = item.quiet
            ? null
            : item.role
              ? item.role
              : item.key
                ? "slider"
                : item.press
                  ? "button"
                  : item.href && home
                    ? "link"
                    : null;
      attribute(group, "role", role);
      attribute(group, "tabindex", role ? 0 : -1);
      attribute(group, "aria-label", role ? said(item.label) : null);
      attribute(group, "aria-hidden", role ? null : "true");
      attribute(group, "aria-pressed", role === "button" ? item.pressed : null);
      attribute(group, "aria-checked", role === "checkbox" ? item.pressed : null);
      const [now, least, most] = item.range ?? [];
          for (const [name, value] of [
            ["aria-valuenow", now],
            ["aria-valuemin", least],
            ["aria-valuemax", most],
            ["aria-valuetext", item.value],
          ])
            attribute(
              group,
              name,
              role === "slider" ? (typeof value === "number" ? place(value) : value && said(value)) : null,
            );
    }
  };

  // what a word in the text names is lit, or else what the state names: parts with a space between them
  const light = (name) => {
    lit = name;
    const names = (lit || state.lit || "").split(" ").filter(Boolean);
    figure.toggleAttribute("data-lit", names.length > 0);
    for (const piece of picture.querySelectorAll("[data-part]"))
      piece.classList.toggle("lit", piece.dataset.part.split(" ").some((part) => names.includes(part)));
  };
  const listen = () => {
    const parts = Object.fromEntries(Object.entries(spec.words ?? {}).map(([word, name]) => [said(word), name]));
    const scope = figure.closest(`section, ${NOTEBOOK}, body`) ?? document;
    for (const word of scope.querySelectorAll("[data-light], em, strong")) {
      const name = word.dataset.light ?? parts[word.textContent.trim().toLowerCase()];
      if (!name) continue;
      word.classList.add("drawing-word");
          for (const [kind, value] of [
            ["pointerenter", name],
            ["focus", name],
            ["pointerleave", null],
            ["blur", null],
          ])
            on(word, kind, (event) => {
              // a finger has no hover, and its tap is a click, which would put out what focus had lit
              const tapped = kind === "focus" ? !word.matches(":focus-visible") : event.pointerType === "touch";
              if (!tapped) light(value);
            });
      if (word.closest("a, button")) continue;
      word.tabIndex = 0;
          for (const [key, value] of [
            ["role", "button"],
            ["aria-description", said("lit in the drawing")],
          ])
            word.setAttribute(key, value);
      on(word, "click", () => light(lit === name ? null : name));
      on(word, "keydown", (event) => {
        if (!PRESS.includes(event.key)) return;
        event.preventDefault();
        light(lit === name ? null : name);
      });
    }
  };
      const ready = (call) =>
        document.readyState === "loading" ? on(document, "DOMContentLoaded", call) : call(); // else the text below is not there yet
  ready(listen);

  // a dark page has light text
  const ground = () => {
    const [r, g, b] = getComputedStyle(el).color.match(/[\d.]+/g).map(Number);
    const bright = (0.3 * r + 0.6 * g + 0.1 * b) * (getComputedStyle(el).color.startsWith("color") ? 255 : 1) > 128;
    figure.dataset.ground = bright ? "dark" : "light";
  };
  const themes = new MutationObserver(ground);
  for (const node of [document.documentElement, document.body]) themes.observe(node, { attributes: true });
  const dusk = matchMedia("(prefers-color-scheme: dark)");
  on(dusk, "change", ground);
  ground();

  const link = figure.querySelector(".drawing-link");
  const paint = () => {
    waiting = 0;
    picture.innerHTML = spec.picture(state, data, w, h);
    light(lit);
    arrange(spec.items?.(state, data, w, h) ?? []);
    for (const update of controls) update();
    const shown = spec.when?.(state, data) ?? [];
    for (const piece of figure.querySelectorAll("[data-when]")) piece.hidden = !shown.includes(piece.dataset.when);
    const sentence = tell(spec.sentence(state, data));
    if (says.textContent !== sentence) says.textContent = sentence;
    if (link && home) link.href = `${home[1]}drawings/${spec.name}.html${toLink(spec.name, state)}`;
    model.set?.("state", state);
    model.save_changes?.();
    figure.dispatchEvent(new CustomEvent("painted"));
  };
  if (link && !home) link.hidden = true;

  const fit = () => {
    const room = stage.clientWidth || el.clientWidth;
    if (!room) return; // on a slide that is not shown
    // on a slide the height is given, and the picture as wide as it leaves room for
    const slide = el.closest(".reveal") && stage.clientHeight > 60;
    w = slide ? clamp((spec.height(760) * room) / stage.clientHeight, 620, 1150) : clamp(room, 300, 760);
    h = spec.height(w);
    // a stage that its page lets grow is filled
    const grows = !slide && getComputedStyle(stage).flexGrow === "1";
    if (grows) h = Math.max(h, (w * stage.clientHeight) / room);
    figure.style.setProperty("--shape", `${w} / ${h}`);
    // on a low screen the page leaves less: the drawing for phones is the one that can be made smaller
    const high = stage.clientHeight;
    if (!slide && high > 60 && high < (h * room) / w - 2) {
      w = clamp((spec.height(300) * room) / high, Math.min(w, 300), spec.narrow ?? w);
      h = spec.height(w);
    }
    stage.setAttribute("viewBox", `0 0 ${w} ${h}`);
    paint();
  };
  const sizes = new ResizeObserver(fit);
  for (const each of [el, stage]) sizes.observe(each);
  el.addEventListener("keydown", (event) => {
    // a notebook takes letters for commands: there every key stays
        if (
          el.closest(NOTEBOOK) ||
          event.target.type === "text" ||
          OWN[event.target.type ?? event.target.getAttribute("role")]?.includes(event.key)
        )
          event.stopPropagation();
  });
  on(window, "hashchange", () => {
    const linked = fromLink(spec.name, state, location.hash);
    if (linked) hand.set(linked);
  });
  paint();
  fit();
  if (spec.live) ready(() => spec.live(hand, figure, on, home?.[1]));
  // who comes from the film finds the drawing below the way back
  const linked = fromLink(spec.name, first, location.hash);
  const from = linked && location.hash.match(/&from=([1-7])$/);
  if (from)
    figure.insertAdjacentHTML(
      "afterbegin",
      `<a class="machine-back" href="../welcome.html#stop-${from[1]}">${escape(said("← Back to the machine"))}</a>`,
    );
  if (from) figure.scrollIntoView({ block: "start" });
  else if (linked && !el.closest(".reveal")) (spec.lands?.(state) || figure).scrollIntoView({ block: "center" });
  return () => {
    stop();
    cancelAnimationFrame(waiting);
    sizes.disconnect();
    themes.disconnect();
    off.forEach((call) => call());
  };
}, { spec });

/** Bring to life the figures of this name that are not yet alive, also those in a shadow tree. */
export const start = (name, render) => {
  const roots = /** @type {(Document | ShadowRoot)[]} */ ([document]);
  for (const root of roots)
    for (const node of root.querySelectorAll("*")) if (node.shadowRoot) roots.push(node.shadowRoot);
  for (const figure of roots.flatMap((root) => [
    ...root.querySelectorAll(`figure.drawing[data-drawing="${name}"]:not([data-alive])`),
  ])) {
    figure.dataset.alive = "";
    const held = JSON.parse(figure.querySelector('script[type="application/json"]').textContent);
    const model = {
      get: (key) => held[key],
      set: (key, value) => {
        held[key] = value;
      },
      save_changes() {},
      on() {},
      off() {},
    };
    render({ model, el: figure.querySelector(".drawing-here") });
  }
};

// The still player's script on a page of stand-ins for the few elements that it touches: `node --test tests/player.test.mjs`.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { mock, test } from "node:test";

const SCRIPT = readFileSync(new URL("../src/helpers/widget/player.js", import.meta.url), "utf8");

class Element {
  constructor(properties = {}) {
    Object.assign(this, { dataset: {}, attributes: {}, listeners: {}, textContent: "", innerHTML: "" }, properties);
  }
  setAttribute(name, value) { this.attributes[name] = String(value); }
  addEventListener(kind, listener) { this.listeners[kind] = listener; }
  fire(kind, key = "") {
    const event = { key, stopped: false, stopPropagation() { this.stopped = true; } };
    this.listeners[kind](event);
    return event;
  }
}

class Slider extends Element {
  #value = "0";
  get value() { return this.#value; } // text, as in a browser
  set value(value) { this.#value = String(value); }
}

/** A figure with a slider of three values, a choice of two and a switch. */
function figure({ notebook = false } = {}) {
  const names = [
    ["1", "2", "3"],
    ["a", "b"],
    ["off", "on"],
  ];
  const frames = names[0].flatMap((n) =>
    names[1].flatMap((k) => names[2].map((s) => [`<img alt="${n}${k}${s}">`, `${n} ${k} ${s}`])),
  );
  const output = new Element();
  const slider = new Slider({ type: "range", tagName: "INPUT", max: "2" });
  slider.closest = () => ({ querySelector: () => output });
  const choice = new Element({ type: "select-one", tagName: "SELECT", selectedIndex: 0 });
  const toggle = new Element({ type: "checkbox", tagName: "INPUT", checked: false });
  const button = new Element({ textContent: "▶ Play", dataset: { plays: "0", label: "n" } });
  const [frame, finding] = [new Element(), new Element()];
  const data = new Element({ textContent: JSON.stringify({ names, frames }) });
  const found = { ".explore-frame": frame, ".explore-finding": finding, 'script[type="application/json"]': data };
  const root = new Element({
    querySelector: (selector) => found[selector],
    querySelectorAll: (selector) => (selector === "button" ? [button] : [slider, choice, toggle]),
    closest: () => (notebook ? {} : null),
  });
  return { root, slider, choice, toggle, button, output, frame, finding };
}

/** Run the script as a page with these figures would. */
function run(...figures) {
  const all = () => figures.map(({ root }) => root).filter((root) => root.dataset.alive === undefined);
  new Function("document", "matchMedia", SCRIPT)({ querySelectorAll: all }, () => ({ matches: calm }));
}
let calm = false; // whether the reader wants no motion

test("every control leads to its own frame", () => {
  const page = figure();
  run(page);
  page.slider.value = 1;
  page.slider.fire("input");
  page.choice.selectedIndex = 1;
  page.choice.fire("input");
  page.toggle.checked = true;
  page.toggle.fire("input");
  assert.equal(page.frame.innerHTML, '<img alt="2bon">');
  assert.equal(page.finding.innerHTML, "2 b on");
  assert.equal(page.output.textContent, "2");
  assert.equal(page.slider.attributes["aria-valuetext"], "2");
});

test("the keys that a control uses stay with it, and the others turn the page of a deck", () => {
  const page = figure();
  run(page);
  for (const [control, own, others] of [
    [page.slider, ["ArrowLeft", "Home"], ["PageDown", "PageUp", "Escape", "n", "s"]],
    [page.choice, ["ArrowDown", "Enter"], ["PageDown", "Escape"]],
    [page.toggle, [" "], ["ArrowRight", "PageDown"]],
  ]) {
    for (const key of own) assert.ok(control.fire("keydown", key).stopped, key);
    for (const key of others) assert.ok(!control.fire("keydown", key).stopped, key);
  }
});

test("in a notebook every key stays, where a letter is a command", () => {
  const page = figure({ notebook: true });
  run(page);
  for (const key of ["ArrowLeft", "PageDown", "s", "x"]) assert.ok(page.slider.fire("keydown", key).stopped, key);
});

test("two equal widgets on a page do not move each other, and none is brought to life twice", () => {
  const [one, other] = [figure(), figure()];
  run(one);
  const listener = one.slider.listeners.input;
  run(one, other);
  assert.equal(one.slider.listeners.input, listener);
  other.slider.value = 2;
  other.slider.fire("input");
  assert.equal(other.finding.innerHTML, "3 a off");
  assert.equal(one.finding.innerHTML, "");
});

test("Play goes to the end, says Stop meanwhile, and starts over", () => {
  mock.timers.enable({ apis: ["setInterval"] });
  const page = figure();
  run(page);
  page.button.fire("click");
  assert.equal(page.button.textContent, "■ Stop");
  assert.equal(page.button.attributes["aria-label"], "Stop: n");
  mock.timers.tick(900);
  assert.equal(page.finding.innerHTML, "2 a off");
  mock.timers.tick(9000);
  assert.equal(page.finding.innerHTML, "3 a off");
  assert.equal(page.button.attributes["aria-label"], "Play: n");
  page.button.fire("click");
  assert.equal(page.finding.innerHTML, "1 a off");
  mock.timers.reset();
});

test("who wants no motion goes on by one step a press", () => {
  calm = true;
  const page = figure();
  run(page);
  for (const value of ["1", "2", "0"]) {
    page.button.fire("click");
    assert.equal(page.slider.value, value);
    assert.equal(page.button.textContent, "▶ Play");
  }
  calm = false;
});

test("a second click stops, and so does a hand on a control", () => {
  mock.timers.enable({ apis: ["setInterval"] });
  const page = figure();
  run(page);
  for (const end of [() => page.button.fire("click"), () => page.choice.fire("input")]) {
    page.slider.value = 0;
    page.button.fire("click");
    end();
    assert.equal(page.button.textContent, "▶ Play");
    mock.timers.tick(9000);
    assert.equal(page.slider.value, "0");
  }
  mock.timers.reset();
});

// Lists come one by one, and type grows with the room that a slide leaves.
// A slide is 1280 pixels wide and 720 high, or 960 on a projector of 4:3.
const TALL = innerWidth / innerHeight < 1.5 && innerWidth > 700 && !location.search.includes("print-pdf");
const HEIGHT = TALL ? 904 : 664, WIDTH = 1240, LARGEST = 1.5, AIRIEST = 1.5;

document.querySelectorAll(".slides section :is(ul, ol)").forEach(list => {
  const items = [...list.children];
  if (list.closest("aside, figure") || items.length < 2) return;
  items.forEach(item => item.classList.add("fragment"));
  // what a text says after its list comes after the list
  for (let next = list.nextElementSibling; next; next = next.nextElementSibling) next.classList.add("fragment");
});
// of a table whose cell says so, the last column comes row by row
document.querySelectorAll(".slides .celltag_last-column-later tbody td:last-child").forEach(cell => {
  cell.classList.add("fragment");
});
// no slide opens with its heading alone: a list that stands by itself shows its first item at once
document.querySelectorAll(".slides section").forEach(slide => {
  const first = [...slide.querySelectorAll("p, li, td, pre, img, svg")].some(e => !e.closest("aside, .fragment"));
  if (!first) slide.querySelector(":is(ul, ol) > li.fragment:not(.fragment .fragment)")?.classList.remove("fragment");
});
// a link opens beside the deck, which stays where it is
document.querySelectorAll('.slides a[href]:not([href^="#"])').forEach(link => {
  if (!link.closest(".next-lecture")) link.target = "_blank";
});
document.querySelector(".reveal").classList.toggle("tall", TALL);
// the speaker's notes of a slide are its own, also where they stand beside what comes later
document.querySelectorAll(".slides .fragment aside.notes").forEach(notes => notes.closest("section").append(notes));

// of the options of a question one is open at a time
const options = slide => [...slide.querySelectorAll("details")].filter(each => !each.closest("aside"));
document.querySelectorAll(".slides section").forEach((slide, k) => {
  if (!slide.querySelector("section")) options(slide).forEach(each => each.setAttribute("name", `options-${k}`));
});

// a slide that is opened by its link shows all of itself; the speaker view follows the deck
const byLink = location.hash.length > 2 && !/[?&](receiver|print-pdf)/.test(location.search);
function showAll() {
  while (byLink && Reveal.availableFragments().next) Reveal.nextFragment();
}

function beyond(slide) {
  if ([...slide.querySelectorAll("pre")].some(code => code.scrollWidth > code.clientWidth)) return true; // a line is longer than its box
  return [...slide.querySelectorAll("*")].some(e => {
    if (e.closest("aside, mjx-assistive-mml, mjx-stretchy-v, mjx-stretchy-h, script, style")) return false; // parts of tall signs are clipped
    const box = e.getBoundingClientRect(), zoom = Reveal.getScale(), home = slide.getBoundingClientRect();
    return (box.bottom - home.top) / zoom > HEIGHT || (box.right - home.left) / zoom > WIDTH;
  });
}

// also with any one option open
function overflows(slide) {
  return beyond(slide) || options(slide).some(each => {
    const was = each.open;
    each.open = true;
    const over = beyond(slide);
    each.open = was;
    return over;
  });
}

// the largest value from `low` to `high` at which the slide still fits
function largest(slide, name, low, high, unit) {
  const set = value => slide.style.setProperty(name, value + unit);
  set(low);
  if (overflows(slide)) return slide.style.removeProperty(name);
  for (let k = 0; k < 6; k++) {
    const middle = (low + high) / 2;
    set(middle);
    if (overflows(slide)) high = middle; else low = middle;
  }
  set(low);
}

function grow(slide) {
  if (
    !slide?.offsetHeight ||
    slide.dataset.grown ||
    slide.classList.contains("stack") ||
    slide.querySelector("h1, figure")
  )
    return;
  slide.dataset.grown = "yes";
  largest(slide, "--grow", 1, LARGEST, "");
  largest(slide, "--air", 0.45, AIRIEST, "em");
}

// What was moved with a pointer gives the focus back, and so does what is given a key that it leaves to the deck.
let pointed = false;
const giveBack = () => document.activeElement.closest(".slides figure") && document.activeElement.blur();
addEventListener("pointerdown", () => { pointed = true; }, true);
addEventListener("keydown", () => { pointed = false; }, true);
for (const kind of ["pointerup", "click", "change"]) {
  // a click leaves the list of a select open
  addEventListener(
    kind,
    () => pointed && (kind === "change" || document.activeElement.tagName !== "SELECT") && giveBack(),
  );
}
document
  .querySelector(".reveal")
  .addEventListener("keydown", ({ key }) => /^(Tab|Shift|Control|Alt|Meta)/.test(key) || giveBack());

// A figure that comes after a question takes the room of the text above it, if it would be small otherwise. The heading
// stays, and the last paragraph, too, if that is enough. A slide that is opened by its link keeps all of its text.
const WHOLE = 514, ROOMY = 484; // the height of a figure that fills the slide, and the least that is easy to read
const SMALLEST_HEADING = 32; // in pixels
const heightOf = figure => figure.clientHeight - (figure.querySelector(":scope > .key.above")?.offsetHeight ?? 0);
function giveWay(slide) {
  const figure = slide?.querySelector(".fragment.visible :is(figure.still, .explore-frame):has(> .roomy)");
  const given = slide?.classList.contains("given");
  if (!figure) return given && slide.classList.remove("given");
  if (given || heightOf(figure) >= WHOLE) return;
  const cells = [...slide.querySelectorAll(":scope > .jp-MarkdownCell, :scope > .fragment > .jp-MarkdownCell")];
  const before = cells.filter(cell => cell.compareDocumentPosition(figure) & Node.DOCUMENT_POSITION_FOLLOWING);
  const texts = before.flatMap(cell => [...cell.querySelectorAll(".jp-RenderedMarkdown > :not(h1, h2, h3)")]);
  if (!texts.length) return;
  texts.forEach((text, k) => text.classList.toggle("gives", k < texts.length - 1));
  slide.classList.add("given");
  if (heightOf(figure) < ROOMY) texts.at(-1).classList.add("gives");
}
// the key of a figure's marks gets a row of its own if it would cover words or points of the figure
function placeKeys(slide) {
  slide?.querySelectorAll("figure.still > .key:not(.corner)").forEach(key => {
    key.classList.remove("above");
    const box = key.getBoundingClientRect();
    const covers = [...key.parentElement.querySelectorAll("svg :is(text, use)")].map(mark => mark.getBoundingClientRect()).some(
      text => text.width > 0 && text.left < box.right && text.right > box.left && text.top < box.bottom - 3 && text.bottom > box.top,
    );
    key.classList.toggle("above", box.width > 0 && covers);
  });
}
// the heading of a widget gets smaller, if it then stays in one line
function oneLine(slide) {
  const heading = slide?.querySelector(":is(h2, h3)");
  if (!heading || heading.dataset.fitted || !slide.querySelector("figure.explore")) return;
  heading.dataset.fitted = "yes";
  const size = () => parseFloat(getComputedStyle(heading).fontSize);
  const broken = () => heading.getBoundingClientRect().height / Reveal.getScale() > 1.9 * size();
  while (broken() && size() > SMALLEST_HEADING) heading.style.fontSize = `${size() - 1}px`;
  if (broken()) heading.style.fontSize = "";
}
let whole = byLink;
document.querySelector(".reveal").classList.toggle("whole", whole);
const give = () => {
  oneLine(Reveal.getCurrentSlide());
  placeKeys(Reveal.getCurrentSlide());
  if (whole) return;
  giveWay(Reveal.getCurrentSlide());
  placeKeys(Reveal.getCurrentSlide());
};

// a sign after a formula stays in the formula's line
function bindSigns() {
  document.querySelectorAll('.slides mjx-container:not([display="true"])').forEach(formula => {
    const after = formula.nextSibling;
    if (!(after instanceof Text)) return;
    const [sign] = /^[.,;:!?)\]。，；：\uff01？）”"]+/.exec(after.data) ?? [];
    if (!sign) return;
    const bound = document.createElement("span");
    bound.style.whiteSpace = "nowrap";
    after.data = after.data.slice(sign.length);
    formula.before(bound);
    bound.append(formula, sign);
  });
}

// reveal.js writes the speaker's window in English and without the deck's type
const openWindow = window.open.bind(window);
window.open = (address, name, ...more) => {
  const view = openWindow(address, name, ...more);
  if (view && name === "reveal.js - Notes") setTimeout(() => dress(view.document));
  return view;
};
function dress(page) {
  const faces = [...document.querySelector("style").sheet.cssRules].filter(rule => rule instanceof CSSFontFaceRule);
  const there = rule => rule.cssText.replace(/url\("([^"]+)"\)/, (_, file) => `url("${new URL(file, location.href)}")`);
  page.documentElement.lang = document.documentElement.lang;
  page.head.insertAdjacentHTML("beforeend", `<style>${faces.map(there).join("")}${SPEAKER.style}</style>`);
  const said = text => text.split(": ").map(part => SPEAKER.words[part.trim()] ?? part).join(": ");
  const translate = () => {
    const walker = page.createTreeWalker(page.body, NodeFilter.SHOW_TEXT);
    while (walker.nextNode()) {
      const node = walker.currentNode, text = said(node.data);
      if (!node.parentElement.closest("script, .value") && node.data !== text) node.data = text;
    }
  };
  // a cue that is longer than its window gets smaller type, so that nobody has to scroll; what the page says follows it
  const room = page.querySelector("#speaker-controls"), cue = page.querySelector(".speaker-controls-notes .value");
  const fit = () => {
    const end = [...cue.querySelectorAll(".cue > :not(.page)")].at(-1);
    for (let size = 20; size >= 14; size -= 0.5) {
      cue.style.setProperty("--cue", `${size}px`);
      if (!end || end.getBoundingClientRect().bottom + room.scrollTop <= room.clientHeight) break;
    }
  };
  new MutationObserver(fit).observe(cue, { subtree: true, childList: true });
  page.defaultView.addEventListener("resize", fit);
  translate();
  new MutationObserver(translate).observe(page.querySelector("#speaker-layout"), { subtree: true, childList: true });
}

const typeset = () => window.MathJax?.startup?.promise ?? Promise.resolve();
const growCurrent = () => typeset().then(() => requestAnimationFrame(() => grow(Reveal.getCurrentSlide())));
window.addEventListener("load", () => {
  typeset().then(bindSigns);
  Reveal.on("slidechanged", () => {
    whole = false;
    document.querySelector(".reveal").classList.remove("whole");
    give();
  });
  for (const kind of ["fragmentshown", "fragmenthidden", "ready"]) Reveal.on(kind, give);
  Reveal.isReady() ? showAll() : Reveal.on("ready", showAll);
  Reveal.on("slidechanged", growCurrent);
  Reveal.isReady() ? growCurrent() : Reveal.on("ready", growCurrent);
  Reveal.on("pdf-ready", () => typeset().then(() => document.querySelectorAll(".slides section").forEach(grow)));
});

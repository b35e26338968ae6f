// Opened as a file, the search may not read the pages from which it would quote: then it lists their titles alone.
if (location.protocol === "file:" && typeof DOCUMENTATION_OPTIONS !== "undefined") {
  DOCUMENTATION_OPTIONS.SHOW_SEARCH_SUMMARY = false;
  document.addEventListener("DOMContentLoaded", () => {
    document
      .getElementById("search-results")
      ?.insertAdjacentHTML(
        "beforebegin",
        "<p>Opened as a file, the search lists titles; where the book is served it quotes the pages, too.</p>",
      );
  });
}
const said = (english, chinese) => (document.documentElement.lang.startsWith("zh") ? chinese : english);
// Names for the theme's fold-out arrows and our folded code, for readers who cannot see them.
document.addEventListener("DOMContentLoaded", () => {
  for (const summary of document.querySelectorAll("summary")) {
    if (!summary.innerText.trim())
      summary.setAttribute("aria-label", said("Show or hide the pages below", "显示或隐藏下级页面"));
  }
  // docutils calls the bibliography a list but its entries no list items
  for (const list of document.querySelectorAll(".citation-list")) list.removeAttribute("role");
});
// In print all is open, but for folded code, which is left out; and the page is light.
let folded = [];
addEventListener("beforeprint", () => {
  const root = document.documentElement;
  folded = [...document.querySelectorAll("main details:not([open])")].filter(
    (fold) =>
      fold
        .querySelector("summary")
        ?.textContent.trim()
        .split(/\s+/)[0]
        .match(/^(code|代码)$/) === null,
  );
  for (const fold of folded) fold.open = true;
  root.dataset.shown = root.dataset.theme ?? "";
  root.dataset.theme = "light";
});
addEventListener("afterprint", () => {
  for (const fold of folded.splice(0)) fold.open = false;
  document.documentElement.dataset.theme = document.documentElement.dataset.shown;
});
// A figure at a size that a phone can read, to be moved about by the finger; Esc or the button closes it.
const SMALL = ":is(figure.still, .explore-frame) > :is(img, svg):not(.narrow, :has(+ .narrow))"; // no drawing for phones beside it
const enlarge = (image) => {
  const dialog = document.createElement("dialog");
  const large = image.cloneNode(true);
  dialog.className = "enlarged";
  dialog.setAttribute("aria-label", said("The figure, enlarged", "放大的图"));
  const wide = image.viewBox ? 1.25 * image.viewBox.baseVal.width : 0.75 * image.naturalWidth;
  large.style.width = `${Math.max(wide, innerWidth)}px`; // ticks of 17 pixels
  dialog.innerHTML = `<button type="button">${said("Close", "关闭")}</button><div class="explore"></div>`; // as in its frame: dark pages turn it
  dialog.lastChild.append(large);
  dialog.addEventListener("close", () => dialog.remove());
  dialog.addEventListener("click", (event) => event.target !== large && dialog.close());
  document.body.append(dialog);
  dialog.showModal();
};
document.addEventListener("click", (event) => {
  const figure = event.target.closest("figure:is(.still, .explore)");
  if (
    event.target.matches(".enlarge") ||
    (matchMedia("(max-width: 700px)").matches && event.target.closest(SMALL))
  )
    enlarge(figure.querySelector(SMALL) ?? figure.querySelector("img, svg"));
});
document.addEventListener("DOMContentLoaded", () => {
  for (const image of document.querySelectorAll(SMALL)) {
    (image.closest(".explore-frame") ?? image).insertAdjacentHTML(
      "afterend",
      `<button type="button" class="enlarge">${said("Enlarge", "放大")}</button>`,
    );
  }
});
// On a phone a long listing shows its first lines, and a button shows the rest; without a script all of it is shown.
const LINES = 8;
document.addEventListener("DOMContentLoaded", () => {
  for (const pre of document.querySelectorAll(".bd-article .cell_input:not(details *) .highlight pre")) {
    const lines = pre.textContent.trimEnd().split("\n").length;
    if (lines <= LINES) continue;
    const button = Object.assign(document.createElement("button"), { type: "button", className: "rest-of-code" });
    const fold = (folded) => {
      pre.classList.toggle("first-lines", folded);
      button.ariaExpanded = String(!folded);
      button.textContent = folded ? said(`All ${lines} lines`, `显示全部 ${lines} 行`) : said("First lines only", "只显示开头");
    };
    fold(true);
    button.addEventListener("click", () => fold(!pre.classList.contains("first-lines")));
    pre.closest(".cell_input").append(button);
  }
});
// What is wider than the page scrolls by the keyboard, too, and says so.
const SCROLLERS =
  ".bd-content :is(table, .highlight pre, .pst-scrollable-table-container, mjx-container[display=true], .explore-frame)";
// On a phone a column of a table is no narrower than this many em, or than its longest cell: what then is too wide scrolls.
const LEAST = { TD: 8.5, TH: 7, HEAD: 5.5, LONG: 13 };
const pen = document.createElement("canvas").getContext("2d");
const widen = () => {
  const phone = matchMedia("(max-width: 600px)").matches;
  const cells = /** @type {NodeListOf<HTMLTableCellElement>} */ (
    document.querySelectorAll(".bd-content table:not(.row-cards) :is(td, th)")
  );
  // measure all cells before the first change, because each change would make the page lay itself out again
  const widths = [...cells].map((cell) => {
    if (!phone || cell.colSpan > 1 || cell.querySelector("mjx-container")) return "";
    const { font, fontSize, paddingLeft, paddingRight } = getComputedStyle(cell);
    pen.font = font;
    const wanted = Math.max(...cell.innerText.split("\n").map((line) => pen.measureText(line.trim()).width));
    const em = parseFloat(fontSize);
    const least = LEAST[cell.closest("thead") ? "HEAD" : wanted > 5 * LEAST.TD * em ? "LONG" : cell.tagName] * em;
    return `${Math.ceil(Math.min(wanted, least) + parseFloat(paddingLeft) + parseFloat(paddingRight)) + 1}px`;
  });
  cells.forEach((cell, k) => {
    cell.style.minWidth = widths[k];
  });
};
const isWide = (each) =>
  each.scrollWidth > each.clientWidth + 1 && /auto|scroll/.test(getComputedStyle(each).overflowX);
const NOT_IN_TEXT = ":is(blockquote, li, figure, td, .sd-card, .side-note, .card-paper, .report) *, .board, .wide, .always";
const TEXT_REM = 39.1; // the width of a line of text
const mark = () => {
  widen();
  const parts = /** @type {HTMLElement[]} */ ([...document.querySelectorAll(SCROLLERS)]);
  for (const each of parts) each.classList.remove("fits", "ends-with-text", "ends-with-figures");
  const wide = parts.map(isWide); // all before the next change, as in `widen`
  const text = TEXT_REM * parseFloat(getComputedStyle(document.documentElement).fontSize);
  const short = parts.map((each) => (each.querySelector("tr")?.getBoundingClientRect().width ?? 0) <= text + 1);
  parts.forEach((each, k) => {
    if (each.matches("table") && !wide[k] && !each.matches(NOT_IN_TEXT))
      each.classList.add(short[k] ? "ends-with-text" : "ends-with-figures");
  });
  parts.forEach((each, k) => {
    each.classList.toggle("goes-on", wide[k]);
    if (each.matches("table, .pst-scrollable-table-container")) each.classList.toggle("fits", !wide[k]);
    if (wide[k]) each.tabIndex = 0;
    else if (each.tabIndex === 0) each.removeAttribute("tabindex");
  });
};
addEventListener("load", () => {
  mark();
  (window.MathJax?.startup?.promise ?? Promise.resolve()).then(mark);
});
addEventListener("resize", mark);
// Who presses a button with a key goes on from there: the theme takes the focus off its own, "Copy" leaves it nowhere. And a
// dialog that is closed gives the focus back to the button that opened it.
let pressed = null;
const goOn = (button) =>
  setTimeout(() => {
    if (
      document.activeElement === document.body &&
      button?.isConnected &&
      button.checkVisibility?.() !== false
    )
      button.focus({ preventScroll: true });
});
document.addEventListener("click", (event) => {
  const button = event.composedPath().find((each) => each.matches?.("button")); // its icon may be another one later
  if (!button) return;
  pressed = button;
  if (event.detail === 0 || button.matches(".copybtn")) goOn(button);
}, true);
document.addEventListener("close", () => goOn(pressed), true);
// Results while one types into the search's window: the index is loaded with the first letters, and not before.
const MOST = 8;
let index = null;
const loadIndex = () => {
  const load = (name) =>
    new Promise((onload, onerror) => {
      const src = document.documentElement.dataset.content_root + name;
      document.head.append(Object.assign(document.createElement("script"), { src, onload, onerror }));
    });
  const names = typeof Search === "undefined" ? ["_static/searchtools.js", "_static/language_data.js", "searchindex.js"] : [];
  return (index ??= names.reduce((before, name) => before.then(() => load(name)), Promise.resolve()));
};
document.addEventListener("input", async ({ target }) => {
  const dialog = target instanceof HTMLInputElement && target.closest("#pst-search-dialog");
  if (!dialog) return;
  let list = dialog.querySelector(".search-found");
  if (!list) {
    list = Object.assign(document.createElement("ol"), { className: "search-found" });
    dialog.append(list);
  }
  const typed = target.value;
  if (typed.trim().length < 2) return list.replaceChildren();
  try {
    await loadIndex();
  } catch {
    return; // Enter still leads to the page of the search
  }
  if (target.value === "" && typed) target.value = typed; // the search empties the field as it starts
  if (target.value !== typed || !Search.hasIndex()) return; // more was typed meanwhile
  const found = [...Search._performSearch(...Search._parseQuery(typed.trim()))].reverse().slice(0, MOST);
  const rows = found.map(([page, title, anchor]) => {
    const link = document.createElement("a"),
      row = document.createElement("li");
    link.href = `${document.documentElement.dataset.content_root}${page}.html${anchor ?? ""}`;
    link.innerHTML = title;
    row.append(link);
    return row;
  });
  list.replaceChildren(...rows);
  list.setAttribute("aria-label", said(`${found.length} results`, `${found.length} 条结果`));
});

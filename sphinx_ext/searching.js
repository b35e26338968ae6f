// Sphinx writes this into the script of its search, before its own scores, which it takes from here.
var Scorer = {
  objNameMatch: 11, objPartialMatch: 6, objPrio: { 0: 15, 1: 5, 2: -5 }, objPrioDefault: 0,
  title: 15, partialTitle: 7, term: 5, partialTerm: 2,
  score: ([page, , , , score]) =>
    /\/(teaching|plans|lectures|making|functions|talk)/.test(page)
      ? 0.3 * score
      : /\/(lesson|glossary)$/.test(page)
        ? 1.5 * score
        : score,
};
// Chinese has no spaces: a run is looked for by its pairs of characters, as `searching.py` lists them.
var splitQuery = (query) =>
  query.split(/[^\p{Letter}\p{Number}_]+/gu).flatMap((word) => {
    const pairs = [...word].map((c, k, all) => c + (all[k + 1] ?? "")).filter((pair) => /^[一-鿿]{2}$/.test(pair));
    return pairs.length ? pairs : [word];
  }).filter((word) => word);
// A search shows pages of its language; a Chinese word finds Chinese pages from the English search, too.
const WORDS = {
  "Search Results": "搜索结果", "Searching": "正在搜索", "Preparing search...": "正在准备搜索……", ", in ": "，见 ",
  "Search": "搜索", "Please activate JavaScript to enable the search functionality.": "搜索需要 JavaScript。",
  "Search finished, found ${resultCount} page(s) matching the search query.": "搜索完毕，找到 ${resultCount} 页。",
  "Your search did not match any documents. Please make sure that all words are spelled correctly and that you've selected enough categories.": "没有找到。请检查写法，或换一个词。",
};
if (typeof Search !== "undefined") {
  const chinese = location.pathname.includes("/zh/");
  const han = /[一-鿿]/.test(new URLSearchParams(location.search).get("q") ?? "");
  if (chinese) Documentation.TRANSLATIONS = WORDS;
  const perform = Search._performSearch;
  Search._performSearch = (...asked) => {
    const every = perform.apply(Search, asked);
    const own = every.filter(([page]) => page.startsWith("chapters/zh/") === chinese);
    return !chinese && han || !own.length ? every : own;
  };
}
// A quotation is text: no contents, no code, no numbers of a drawing, no sentence for where scripts are off; of formulas the plain ones.
document.addEventListener("DOMContentLoaded", () => {
  const read = Search.htmlToText;
  Search.htmlToText = (page, anchor) => {
    const whole = new DOMParser().parseFromString(page, "text/html");
    whole
      .querySelectorAll(
        "main :is(nav, noscript, pre, svg, .drawing-says, .hide, .toctree-wrapper, .onlyprint, .bd-header-article, .bd-sidebar-secondary, .prev-next-footer)",
      )
      .forEach((part) => part.remove());
    whole.querySelectorAll("main .math").forEach((formula) => {
      const plain = formula.textContent.trim().replace(/^\\[([]|\\[)\]]$/g, "");
      formula.textContent = /[\\^{}]/.test(plain) ? "…" : plain;
    });
    return read(whole.documentElement.outerHTML, anchor);
  };
});

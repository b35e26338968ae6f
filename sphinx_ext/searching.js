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
  const chinese = document.documentElement.lang.startsWith("zh");
  if (chinese) Documentation.TRANSLATIONS = WORDS;
  // A term of the glossary that is asked for by its name, also in the plural, is the first result.
  const defined = (asked) => {
    const { docnames, filenames, titles, alltitles } = Search._index,
      home = docnames.indexOf(chinese ? "chapters/zh/glossary" : "chapters/glossary");
    for (const [title, places] of Object.entries(alltitles)) {
      const names = title.toLowerCase().split(/[,，;；（）()]\s*/),
        found = places.find(([file, id]) => file === home && id !== null);
      if (found && names.some((name) => name && [name, `${name}s`].includes(asked)))
        return [docnames[home], `${titles[home]} > ${title}`, `#${found[1]}`, null, 100, filenames[home]];
    }
    return null;
  };
  const perform = Search._performSearch;
  let newest = [];
  Search._performSearch = (query, ...more) => {
    try {
      localStorage.removeItem("sphinx_highlight_terms"); // else the next page is marked all over, its menu, too
    } catch {} // a browser that keeps nothing
    const every = perform.call(Search, query, ...more),
      own = every.filter(([page]) => page.startsWith("chapters/zh/") === chinese),
      other = chinese ? !own.length : /[一-鿿]/.test(query),
      found = other ? every : own,
      definition = defined(query.trim().toLowerCase());
    newest.length = 0; // what is being listed of an earlier search ends here
    newest = definition
      ? [...found.filter(([page, , anchor]) => page !== definition[0] || (anchor && anchor !== definition[2])), definition]
      : found;
    return newest; // the best is the last
  };
  // On the page of the search the results follow what is typed.
  let waiting = 0;
  document.addEventListener("input", ({ target }) => {
    const out = document.getElementById("search-results");
    if (!out || !(target instanceof HTMLInputElement) || target.name !== "q" || target.closest("dialog")) return;
    clearTimeout(waiting);
    waiting = setTimeout(() => {
      const query = target.value.trim(),
        address = new URL(location.href);
      newest.length = 0;
      Search.stopPulse();
      out.replaceChildren();
      address.searchParams.set("q", query);
      history.replaceState(null, "", address);
      if (query) Search.performSearch(query);
    }, 250);
  });
}
// A quotation is text: no contents, no code, no numbers of a drawing, no sentence for where scripts are off; of formulas the plain ones.
document.addEventListener("DOMContentLoaded", () => {
  const read = Search.htmlToText;
  Search.htmlToText = (page, anchor) => {
    const whole = new DOMParser().parseFromString(page, "text/html");
    whole
      .querySelectorAll(
        "html[lang=en] p > span[lang=zh-CN], main :is(nav, noscript, pre, svg, .drawing-says, .hide, .toctree-wrapper, .onlyprint, .bd-header-article, .bd-sidebar-secondary, .prev-next-footer)",
      )
      .forEach((part) => part.remove());
    whole.querySelectorAll("main .math").forEach((formula) => {
      const plain = formula.textContent.trim().replace(/^\\[([]|\\[)\]]$/g, "");
      formula.textContent = /[\\^{}]/.test(plain) ? "…" : plain;
    });
    return read(whole.documentElement.outerHTML, anchor);
  };
});

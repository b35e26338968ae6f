// Opened as a file, the search may not read the pages from which it would quote: then it lists their titles alone.
if (location.protocol === "file:" && typeof DOCUMENTATION_OPTIONS !== "undefined") {
  DOCUMENTATION_OPTIONS.SHOW_SEARCH_SUMMARY = false;
  document.addEventListener("DOMContentLoaded", () => {
    document.getElementById("search-results")?.insertAdjacentHTML("beforebegin", "<p>Opened as a file, the search lists titles; where the book is served it quotes the pages, too.</p>");
  });
}
// Names for the theme's fold-out arrows and our folded code, for readers who cannot see them.
document.addEventListener("DOMContentLoaded", () => {
  for (const summary of document.querySelectorAll("summary")) {
    if (!summary.innerText.trim()) summary.setAttribute("aria-label", "Show or hide the pages below");
  }
  // docutils calls the bibliography a list but its entries no list items
  for (const list of document.querySelectorAll(".citation-list")) list.removeAttribute("role");
});
// A table that is wider than the page scrolls by the keyboard, too.
window.addEventListener("load", () => {
  for (const table of document.querySelectorAll(".bd-content table")) {
    if (table.scrollWidth > table.clientWidth) table.tabIndex = 0;
  }
});

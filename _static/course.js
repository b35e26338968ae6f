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

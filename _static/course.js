// Names for the theme's fold-out arrows and our folded code, for readers who cannot see them.
document.addEventListener("DOMContentLoaded", () => {
  for (const summary of document.querySelectorAll("summary")) {
    if (!summary.innerText.trim()) summary.setAttribute("aria-label", "Show or hide the pages below");
  }
  // docutils calls the bibliography a list but its entries no list items
  for (const list of document.querySelectorAll(".citation-list")) list.removeAttribute("role");
});

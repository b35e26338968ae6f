// Code that scrolls sideways, that at the foot of the page too.
() => {
  for (const fold of document.querySelectorAll('details.page-code')) fold.open = true;
  return [...document.querySelectorAll('div.cell_input pre')]
    .filter(e => e.checkVisibility() && e.scrollWidth > e.clientWidth + 1).map(e => e.innerText.slice(0, 60));
}

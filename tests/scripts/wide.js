// Code that scrolls sideways.
() => [...document.querySelectorAll('div.cell_input pre')]
  .filter(e => e.offsetParent && e.scrollWidth > e.clientWidth + 1).map(e => e.innerText.slice(0, 60))

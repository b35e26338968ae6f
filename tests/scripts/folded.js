// The first word of what opens each closed fold of a page.
() => [...document.querySelectorAll('main details:not([open])')]
  .map(e => e.querySelector('summary').textContent.trim().split(/\s+/)[0])

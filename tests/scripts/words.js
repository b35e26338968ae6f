// What a page says beside its code and its formulas.
() => { const c = document.querySelector('main').cloneNode(true);
  c.querySelectorAll('pre, code, script, style, mjx-container').forEach(e => e.remove()); return c.textContent; }

// Formulas are set, type is there, and what follows from both was drawn.
async () => {
  await Promise.all([window.MathJax?.startup?.promise, document.fonts.ready]);
  await new Promise(r => requestAnimationFrame(() => requestAnimationFrame(r)));
}

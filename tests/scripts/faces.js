// The fonts that a page ships, and what it writes in which list of fonts: { faces: [[name, file, range]], written: [[list, signs]] }.
// Formulas have fonts of their own, whose signs are no text.
() => {
  const faces = [...document.styleSheets].flatMap((sheet) =>
    [...sheet.cssRules]
      .filter((rule) => rule instanceof CSSFontFaceRule)
      .map(({ style }) => {
    const file = style.getPropertyValue("src").match(/url\("?([^")]+)"?\)/)?.[1];
        return [
          style.getPropertyValue("font-family").replace(/["']/g, ""),
          file && new URL(file, sheet.href ?? document.baseURI).href,
          style.getPropertyValue("unicode-range"),
        ];
      }),
  );
  const written = {};
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const parent = walker.currentNode.parentElement;
    if (
      !walker.currentNode.data.trim() ||
      parent.closest("script, style, noscript, template, mjx-container, math, .math, option, canvas")
    )
      continue;
    const language = parent.closest("[lang]:not(html)"); // another language's words, which a page hides
    if (language && getComputedStyle(language).display === "none") continue;
    const list = getComputedStyle(parent).fontFamily;
    (written[list] ??= new Set());
    for (const sign of walker.currentNode.data) written[list].add(sign);
  }
  for (const each of document.querySelectorAll("*"))
    for (const side of ["::before", "::after"]) {
      const style = getComputedStyle(each, side),
        text = style.content.match(/^"(.*)"$/)?.[1];
      if (text && !each.closest("mjx-container"))
        for (const sign of text) (written[style.fontFamily] ??= new Set()).add(sign);
  }
  return { faces, written: Object.entries(written).map(([list, signs]) => [list, [...signs].join("")]) };
}

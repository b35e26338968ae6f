// Press the machine's button of a stop, and say what is on the screen then: the stop that is shown, how many lines of its
// text, of how many, whether the machine's sentence is seen whole, and the field of a question, where there is one.
async (stop) => {
  const seen = (box) => {
    const [x, y] = [box.left + Math.min(20, box.width / 2), box.top + box.height / 2];
    return box.top >= 0 && box.bottom <= innerHeight && document.elementFromPoint(x, y);
  };
  document.querySelectorAll(".drawing-steps button")[stop].click();
  const place = () => JSON.stringify([scrollY, document.querySelector(".drawing-says").textContent]);
  let [before, same] = ["", 0];
  while (same < 3) { // nothing moves any more
    await new Promise((r) => requestAnimationFrame(() => requestAnimationFrame(r)));
    same = place() === before ? same + 1 : 0;
    before = place();
  }
  const section = document.getElementById(`stop-${stop}`);
  const lines = [...section.querySelectorAll(":scope > p, .stop-text > p, .stop-text > .container p")].flatMap((p) => {
    const range = document.createRange();
    range.selectNodeContents(p);
    const tops = new Map();
    for (const box of range.getClientRects()) if (box.width > 1) tops.set(Math.round(box.bottom / 6), box);
    return [...tops.values()];
  });
  const says = document.querySelector(".drawing-says");
  const range = document.createRange();
  range.selectNodeContents(says);
  return {
    shown: Number(document.querySelector(".drawing-steps [aria-current]").textContent),
    lines: lines.filter((box) => section.contains(seen(box) || null)).length,
    of: lines.length,
    field: section.contains(seen(section.querySelector("input")?.getBoundingClientRect() ?? { top: -1 }) || null),
    sentence: says.contains(seen(range.getBoundingClientRect()) || null),
  };
}

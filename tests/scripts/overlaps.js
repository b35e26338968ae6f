// The first words of those that lie on another one of them: no line of text covers a second.
(selector) => {
  const boxes = [...document.querySelectorAll(selector)].filter((each) => each.checkVisibility?.() !== false).map((each) => [each, each.getBoundingClientRect()]).filter(([, box]) => box.height > 0);
  return boxes.flatMap(([each, a], k) => boxes.slice(k + 1).filter(([other, b]) => !each.contains(other) && !other.contains(each) && a.left < b.right - 1 && b.left < a.right - 1 && a.top < b.bottom - 1 && b.top < a.bottom - 1).map(([other]) => `${each.textContent.slice(0, 30)} / ${other.textContent.slice(0, 30)}`));
}

// Whether an item's middle is where the finger went, across (0) and down (1).
([part, goal]) => {
  const box = document.querySelector(`.item[data-id="${part}"]`).getBoundingClientRect();
  const now = [box.x + box.width / 2, box.y + box.height / 2];
  return goal.every(([k, x]) => Math.abs(now[k] - x) < 16);
}

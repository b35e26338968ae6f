// Controls that are seen and can be used, one of each kind in a figure; of a drawing's items those with a role.
(figure) => {
  const kinds = new Set();
  return [...figure.querySelectorAll("input, select, button, .item[role]")].filter((e) => {
    const box = e.getBoundingClientRect(),
      at = document.elementFromPoint(box.x + box.width / 2, box.y + box.height / 2);
    const kind = e.tagName + (e.type ?? e.getAttribute("role")),
      own = e.contains(at) && !e.disabled && !kinds.has(kind);
  if (own) kinds.add(kind);
  return own && kind !== 'glink'; }) }

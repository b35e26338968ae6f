// What axe finds serious on the page, or of its contrast alone: each with three places. Contrast takes most of the time: it
// is asked of one text of each colour, size and ground, the grounds of its ancestors among them, until one was right. What
// no rule looks into is left out meanwhile: code without such a text, what a picture draws, what stands beside MathML.
async (contrastAlone) => {
  const right = new Set(JSON.parse(sessionStorage.right ?? '[]'));
  const grounds = new Map(), looks = new Map();
  const ground = (e) => {
    if (!e) return '';
    if (!grounds.has(e)) {
      const {backgroundColor, backgroundImage, opacity, position} = getComputedStyle(e);
      const own = [backgroundColor, backgroundImage, opacity, position].join();
      const under = ground(e.parentElement);
      grounds.set(e, own === 'rgba(0, 0, 0, 0),none,1,static' ? under : `${under};${own}`);
    }
    return grounds.get(e);
  };
  for (const e of document.querySelectorAll('body *')) {
    if (![...e.childNodes].some(n => n.nodeType === 3 && n.data.trim()) || !e.checkVisibility()) continue;
    const {color, fontSize, fontWeight} = getComputedStyle(e);
    const look = [color, fontSize, fontWeight, ground(e)].join();
    if (!right.has(look) && !looks.has(look)) looks.set(look, e);
  }
  if (contrastAlone && !looks.size) return [];
  for (const e of looks.values()) e.dataset.look = '';
  const plain = [...document.querySelectorAll('pre, svg[role=img], mjx-math')]
    .filter(e => e.firstElementChild && !e.querySelector('[data-look], a, button, [tabindex]'))
    .map(e => [e, ...e.childNodes]);
  for (const [e] of plain) e.replaceChildren(e.matches('pre') ? e.textContent : '');
  axe.configure({rules: [{id: 'color-contrast', selector: '[data-look]'}]});
  const {violations, incomplete} = await axe.run({
    resultTypes: ['violations', 'incomplete'], elementRef: true, preload: false,
    ...contrastAlone && {runOnly: ['color-contrast']},
  });
  for (const [e, ...inside] of plain) e.replaceChildren(...inside);
  const doubtful = new Set([...violations, ...incomplete].flatMap(v => v.nodes.map(n => n.element)));
  for (const [look, e] of looks) {
    delete e.dataset.look;
    if (!doubtful.has(e)) right.add(look);
  }
  sessionStorage.right = JSON.stringify([...right]);
  return violations.filter(v => ['serious', 'critical'].includes(v.impact))
    .map(v => v.id + ': ' + v.nodes.map(n => n.target.join(' ')).slice(0, 3).join(', '));
}

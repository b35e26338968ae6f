// What axe finds serious on the page, or of its contrast alone: each with three places. Contrast takes four fifths of the
// time: it is asked of one text of each colour, size and ground, the grounds of its ancestors among them.
async (contrastAlone) => {
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
    if (!looks.has(look)) looks.set(look, e);
  }
  const resultTypes = ['violations'];
  const pale = await axe.run([...looks.values()], {resultTypes, runOnly: ['color-contrast']});
  const rest = contrastAlone ? [] : (await axe.run({resultTypes, rules: {'color-contrast': {enabled: false}}})).violations;
  return [...pale.violations, ...rest].filter(v => ['serious', 'critical'].includes(v.impact))
    .map(v => v.id + ': ' + v.nodes.map(n => n.target.join(' ')).slice(0, 3).join(', '));
}

// What axe finds serious on the page, by all its rules or by those that are named: each with three places. The colours of
// code are the same on all pages, and half of axe's time: `without` leaves them out.
async asked => {
  const {names, without} = asked ?? {};
  const found = await axe.run(without ? {exclude: [[without]]} : document,
    {resultTypes: ['violations'], ...(names && {runOnly: names})});
  return found.violations.filter(v => ['serious', 'critical'].includes(v.impact))
    .map(v => v.id + ': ' + v.nodes.map(n => n.target.join(' ')).slice(0, 3).join(', '));
}

// What axe finds serious on the page, by all its rules or by those that are named: each with three places.
async (names) => {
  const found = await axe.run({resultTypes: ['violations'], ...(names && {runOnly: names})});
  return found.violations.filter(v => ['serious', 'critical'].includes(v.impact))
    .map(v => v.id + ': ' + v.nodes.map(n => n.target.join(' ')).slice(0, 3).join(', '));
}

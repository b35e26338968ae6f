// What the page hands to the graph for a reader's settings.
async ({ settings, shape, n }) => {
  const change = await import('./frontend/live/change.js');
  const use = change.checked(settings, shape, n), { cos, sin } = change.tables(use, shape, 0, n);
  const seen = [...change.bias(use, 0, n)].map((x) => x === 0);
  return { cos: [...cos], sin: [...sin], gain: [...change.gain(use, shape)], seen };
}

// The page's decoder from these weights: gradients of the first batch, the loss of each, the weights after a step on each.
async ({ design, vocabulary, weights, batches, rate, numbers }) => {
  const { learner } = await import('./frontend/live/learn.js');
  const most = Math.max(...batches.map(({ ids, n }) => Math.max(ids.length, n)));
  const own = learner(design, vocabulary, {
    Numbers: globalThis[numbers],
    tokens: most,
    longest: Math.max(...batches.map(({ n }) => n)),
  });
  for (const { name, at, size } of own.parts) own.weights.set(weights[name], at);
  const read = (flat) =>
    Object.fromEntries(own.parts.map(({ name, at, size }) => [name, [...flat.subarray(at, at + size)]]));
  const losses = [];
  let gradients = null, logits = null, maps = null;
  batches.forEach(({ ids, rows, n, asked, targets, places }, k) => {
    own.forward(ids, rows, n, asked, asked.length, places ?? own.places);
    if (k === 0) [logits, maps] = [[...own.logits.subarray(0, asked.length * vocabulary)], [...own.maps(1)]];
    losses.push(own.backward(targets));
    gradients ??= read(own.gradients);
    own.adam(rate * Math.min(1, (k + 1) / 20));
  });
  return { losses, gradients, logits, maps, weights: read(own.weights) };
}

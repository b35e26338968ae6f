// Losses of the first steps of a design at each of some learning rates, and the rates that the page offers and prefers.
async ({ design, task, rates, designs }) => {
  const { begun, bestRate, RATES, stepped } = await import('./frontend/live/race.js');
  const losses = rates.map((rate) => {
    const own = begun(design, task, 0, { Numbers: Float64Array, tokens: 640, longest: 40 });
    return [1, 2, 3].map((step) => stepped(own, task, 0, step, rate));
  });
  return { losses, RATES, best: designs.map((each) => bestRate(task, each)) };
}

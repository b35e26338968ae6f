// A run of the page by the race's rules.
async ({ design, task, seed }) => {
  const { entryOf, refused, run } = await import('./frontend/live/race.js'), losses = [];
  const found = run(design, task, seed, { Numbers: Float64Array, tokens: 640, longest: 132 }, (step, loss) => losses.push(loss));
  const shares = found.right.map(({ right, of }) => right / of);
  return { steps: found.steps, learned: found.learned, shares, losses, entry: entryOf(design), refused: refused(design) };
}

// What the page draws for a task: batches of rows with their questions, its words and numbers; and the places of a design that draws them.
async ({ task, n, count }) => {
  const race = await import('./frontend/live/race.js'), batches = [];
  for (let seed = 0; seed < count; seed += 1) {
    const { ids, asked, targets, sources, ...rest } = race.batch(race.TASKS[task], race.generator(9, seed), 32, n);
    batches.push({ ...rest, ids: [...ids], asked: [...asked], targets: [...targets], sources });
  }
  const { vocabulary, tested, chance } = race.TASKS[task], { RATE, ROWS, TRAINED, STEPS, CHECKED, LEARNED, LENGTHS } = race;
  const places = [...race.drawn(race.generator(1), 20)], start = race.begun({ positions: 'none', window: 0, map: 'difference' }, task, 1, {});
  const spread = Object.fromEntries(start.parts.map(({ name, at, size }) => [name, [...start.weights.subarray(at, at + size)]]));
  return { batches, vocabulary, tested, chance, places, spread, budget: { RATE, ROWS, TRAINED, STEPS, CHECKED, LEARNED, LENGTHS } };
}

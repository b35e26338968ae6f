// The last logits of one pass, on one thread and on two.
async (ids) => {
  const { engine } = await import('/live/engine.js'), change = await import('/live/change.js'), found = {};
  for (const threads of [1, 2]) {
    const ask = engine(() => {}), facts = await ask('load', { threads }), use = change.checked({}, facts.shape);
    const made = await ask('forward', {
      ids,
      rows: [ids.length - 1],
      want: ['logits'],
      ...change.tables(use, facts.shape, 0, ids.length),
      bias: change.bias(use, 0, ids.length),
      gain: change.gain(use, facts.shape),
    });
    found[threads] = { threads: facts.threads, seconds: made.seconds, logits: [...made.logits] };
  }
  return found;
}

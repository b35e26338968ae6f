// A decoder of the page out to a file (base64) after three steps, or in from one; its logits on these rows, and what the file says.
async ({ file, design, task, ids, n }) => {
  const race = await import('./frontend/live/race.js'), room = { Numbers: Float64Array, tokens: 640, longest: 40 };
  try {
    const found = file
      ? race.fromFile(Uint8Array.from(Buffer.from(file, "base64")).buffer, room)
      : { own: race.begun(design, task, 0, room), task, facts: {} };
    if (!file) for (let step = 1; step <= 3; step += 1) race.stepped(found.own, task, 0, step);
    const facts = {
      task,
      entry: file ? "" : race.entryOf(design),
      design: JSON.stringify(design),
      seed: "0",
      steps: "3",
    };
    found.own.forward(ids, ids.length / n, n);
    const logits = [...found.own.logits.subarray(0, ids.length * found.own.vocabulary)];
    return {
      file: file ? null : Buffer.from(race.toFile(found.own, facts)).toString("base64"),
      logits,
      task: found.task,
      design: found.own.design,
      facts: found.facts,
    };
  } catch (error) {
    return { error: error.message };
  }
}

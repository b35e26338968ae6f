// A file's decoder (base64) with a stop of the machine at work: its logits on these rows then and afterwards, what the stop shows, and on which row.
async ({ file, stop, value, ids, n, at }) => {
  const race = await import('./frontend/live/race.js'), { ACTS, acted } = await import('./frontend/live/stops.js');
  const open = () => race.fromFile(Uint8Array.from(Buffer.from(file, 'base64')).buffer, { Numbers: Float64Array, tokens: 640, longest: 160 });
  const logits = (own) => {
    own.forward(ids, ids.length / n, n);
    return [...own.logits.subarray(0, ids.length * own.vocabulary)];
  };
  const { own, task } = open(), trained = logits(own), shown = acted(own, { task, seed: 0 }, { stop, value, n: at }), after = logits(own), changed = open().own;
  ACTS[stop]?.(changed, value);
  return { shown, changed: logits(changed), untouched: trained.every((x, k) => x === after[k]), row: [...race.looked(task, at).ids] };
}

// Tokens with separators between, with those that are hidden and all places, by settings that count the reader's own tokens.
async ({ ids, shape, settings }) => {
  const change = await import('./frontend/live/change.js');
  const tokens = ids.map((id) => ({ id })), after = change.separated(tokens, [{ id: 0 }], 2);
  const own = change.checked(settings, shape, tokens.length);
  const use = change.placed(own, tokens.map((each) => after.indexOf(each)));
  const hidden = [...use.hide].map((k) => after[k - 1].id);
  return { ids: after.map(({ id }) => id), hidden, places: change.positions(use, 0, after.length) };
}

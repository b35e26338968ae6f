// Logits and final states of the page's own decoder after each prefix of letters.
async ({ model, letters, ask }) => {
  const { prefixes, unpacked } = await import('./frontend/live/decoder.js');
  const found = prefixes(unpacked(model), letters, ask);
  return { logits: found.map(({ logits }) => [...logits]), states: found.map(({ state }) => [...state]) };
}

// The prompt of the page's first link.
async () => {
  const { fromLink } = await import('./frontend/live/change.js');
  const { PRESETS } = await import('./frontend/live/presets.js');
  return fromLink(PRESETS[0].link).prompt;
}

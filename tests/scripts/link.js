// Whether a state comes back from its link, and what is read from a link of nonsense.
async (data) => {
  const change = await import('./frontend/live/change.js');
  const state = { ...change.VIEW, ...change.TRAINED, ...data }, back = change.fromLink(change.toLink(state));
  const nonsense = '#window=x&token=NaN&__proto__=1&first=maybe&quarters=%00&constructor=2&stretch=Infinity&prompt=';
  return { same: JSON.stringify(back) === JSON.stringify(state), odd: change.fromLink(nonsense + 'a'.repeat(9000)) };
}

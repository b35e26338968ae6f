// The page is dark as the reader's switch makes it, and what moves to it has arrived.
async () => {
  document.documentElement.dataset.theme = 'dark';
  await new Promise(requestAnimationFrame);
  for (const each of document.getAnimations())
    if (each.effect.getComputedTiming().endTime < Infinity) each.finish();
}

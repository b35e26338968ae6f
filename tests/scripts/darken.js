// The page is dark as the reader's switch makes it, and nothing moves any more.
async () => {
  document.documentElement.dataset.theme = 'dark';
  await new Promise(requestAnimationFrame);
  await Promise.all(document.getAnimations().map(a => a.finished.catch(() => 0)));
}

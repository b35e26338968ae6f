// By how many pixels the page is wider than its window.
async () => {
  await new Promise(requestAnimationFrame);
  return document.documentElement.scrollWidth - innerWidth;
}

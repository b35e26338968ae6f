// Pictures of the slide and how large each is shown, beside what it has at 120 dots an inch.
() => [...Reveal.getCurrentSlide().querySelectorAll('figure :is(img, svg.chart.wide)')].filter(i => i.checkVisibility()).map(i => {
  const b = i.getBoundingClientRect(), box = i.viewBox?.baseVal;
  const [wide, high] = box ? [box.width * 120 / 72, box.height * 120 / 72] : [i.naturalWidth, i.naturalHeight];
  return [i.src ?? i.innerHTML, Math.min(b.width / wide, b.height / high)];
})

// Of each figure of the slide that is a picture, still or with controls: how many drawings one sees, the captions that are hidden, and the speaker's notes.
() => { const slide = Reveal.getCurrentSlide();
  const all = [...slide.querySelectorAll('aside.notes')].map(each => each.textContent).join(' ');
  return [...slide.querySelectorAll('figure.still, .explore-frame')].filter(figure => figure.querySelector(':scope > :is(svg, img)') && figure.checkVisibility({ visibilityProperty: true })).map(figure => [
    [...figure.querySelectorAll(':scope > :is(svg, img)')].filter(each => each.checkVisibility()).length,
    [...figure.querySelectorAll('figcaption')].filter(each => !each.checkVisibility()).map(each => each.textContent),
    all]); }

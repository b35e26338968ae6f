// Pictures of the slide and how large each is shown.
() => [...Reveal.getCurrentSlide().querySelectorAll('figure img')].map(i => {
  const b = i.getBoundingClientRect(); return [i.src, Math.min(b.width / i.naturalWidth, b.height / i.naturalHeight)] })

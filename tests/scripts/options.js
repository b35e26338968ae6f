// Each option of a slide's question opened in turn: how low it reaches, in what room, how many are open.
() => { const slide = Reveal.getCurrentSlide(), every = [...slide.querySelectorAll('details')];
  const options = every.filter(each => !each.closest('aside'));
  const low = () => Math.max(...[...slide.querySelectorAll('*')].filter(e => !e.closest('aside') && e.checkVisibility())
    .map(e => e.getBoundingClientRect()).filter(b => b.width > 2 && b.height > 2).map(b => b.bottom));
  const found = options.map(each => (each.querySelector('summary').click(), [low(), options.filter(o => o.open).length]));
  return [Math.max(0, ...found.map(f => f[0])), innerHeight - 56 * Reveal.getScale(), Math.max(0, ...found.map(f => f[1]))] }

// What a slide shows: sizes, what reaches lowest, its words.
() => { const s = Reveal.getCurrentSlide(), r = s.getBoundingClientRect();
  const images = [...s.querySelectorAll('img, svg.chart.wide')].filter(i => i.checkVisibility()).map(i => i.getBoundingClientRect());
  const low = [...s.querySelectorAll('*')].filter(e => !e.closest('aside') && !e.closest('mjx-assistive-mml'))
    .map(e => e.getBoundingClientRect()).filter(b => b.width > 2 && b.height > 2).reduce((m, b) => Math.max(m, b.bottom), 0);
  const first = [...s.querySelectorAll('p, li, td, pre, img, svg, canvas')].filter(e => !e.closest('aside, .fragment:not(.visible)'))
    .filter(e => e.getBoundingClientRect().height > 2).length;
  const asks = [...s.querySelectorAll('h2, h3')].some(h => /[?？][^a-z]*$/.test(h.textContent));
  return {first, asks, height: s.scrollHeight, width: s.scrollWidth, low, small: images.filter(b => b.height < 240).length,
          text: (c => { c.querySelectorAll('aside, pre, code, style, script, table[id^=T_], table.dataframe').forEach(e => e.remove()); return c.textContent })(s.cloneNode(true)),
          heading: s.querySelectorAll('h1, h2').length || s.querySelectorAll('h3').length,
          type: Math.min(...[...s.querySelectorAll('p, li, td')].filter(e => e.offsetParent && !e.closest('aside, figure, .live'))
            .map(e => parseFloat(getComputedStyle(e).fontSize)), 99)} }

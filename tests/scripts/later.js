// The places of slides on which something comes at the next key.
() => [...document.querySelectorAll('.slides div.fragment')]
  .map(e => Reveal.getIndices(e.closest('section'))).map(i => [i.h, i.v ?? 0])

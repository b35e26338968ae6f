// The place of every slide of a deck, across and down.
() =>
  [...document.querySelectorAll(".slides section:not(.stack)")]
    .map((s) => Reveal.getIndices(s))
    .map((i) => [i.h, i.v ?? 0]);

// Turn to the slide of an element, with all that comes later on it.
e => {
  const at = Reveal.getIndices(e.closest('section'));
  Reveal.slide(at.h, at.v);
  while (Reveal.availableFragments().next) Reveal.nextFragment();
}

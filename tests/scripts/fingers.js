// Count what a finger's events come to.
() => {
  window.fingers = {};
  for (const kind of ['pointermove', 'pointerup', 'pointercancel'])
    addEventListener(kind, () => { fingers[kind] = (fingers[kind] ?? 0) + 1; }, true);
}

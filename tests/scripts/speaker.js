// The words of the speaker view itself, without the slides' and the clock's.
() => {
  const copy = document.body.cloneNode(true);
  copy.querySelectorAll('script, .value, .clock').forEach(e => e.remove());
  return copy.textContent;
}

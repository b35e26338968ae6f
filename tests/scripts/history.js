// A history with 99 of the 100 changes gone that Safari allows.
() => {
  const real = history.replaceState.bind(history);
  let calls = 0;
  history.replaceState = (...all) => {
    if ((calls += 1) > 100) throw new DOMException('limit', 'SecurityError');
    return real(...all);
  };
  for (let k = 0; k < 99; k += 1) history.replaceState(null, '', location.href);
}

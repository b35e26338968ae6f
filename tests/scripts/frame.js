// The milliseconds from a control's move, or from a typed letter, to its picture: the middle one of twenty.
async () => {
  const box = document.querySelector('.drawing-controls :is(input[type=range], input[type=text])'), taken = [];
  for (let k = 0; k < 20; k += 1) {
    if (box.type === 'text') box.value += k;
    else if (Number(box.value) < box.max) box.stepUp(); else box.value = box.min;
    await new Promise(r => requestAnimationFrame(r));
    box.dispatchEvent(new Event('input'));
    const begun = performance.now();
    await new Promise(r => document.querySelector('figure').addEventListener('painted', r, {once: true}));
    document.querySelector('svg').getBoundingClientRect();
    taken.push(performance.now() - begun);
  }
  return taken.sort((a, b) => a - b)[10];
}

// What was asked for is drawn after two frames.
() => new Promise(r => requestAnimationFrame(() => requestAnimationFrame(r)))

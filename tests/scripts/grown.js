// A slide's type grows in the frame after the formulas are set.
() => MathJax.startup.promise.then(() => new Promise(r => requestAnimationFrame(() => requestAnimationFrame(r))))

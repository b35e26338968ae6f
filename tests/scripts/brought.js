// What the arcs of the machine bring of the orange token in each state, on a stage of 720 by 420.
async (states) => {
  const { brought } = await import('./src/course/drawing/machine.js');
  return states.map((state) => brought(state, 720, 420));
}

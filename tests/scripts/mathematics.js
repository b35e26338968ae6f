// What functions of the drawings' mathematics return, each given by its name and its arguments.
async (calls) => {
  const mathematics = await import('./src/course/drawing/mathematics.js');
  return calls.map(([name, given]) => mathematics[name](...given));
}

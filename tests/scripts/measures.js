// The page's measures of five maps and of two vectors.
async ({ maps, n, a, b }) => {
  const change = await import('./frontend/live/change.js');
  return {
    scores: change.scores(Float32Array.from(maps), 5, n),
    divergence: change.divergence(a, b),
    same: change.divergence(a, a),
    likeliest: change.likeliest(a, 4),
    distance: change.distance(a, b),
    size: change.size(a),
    softmax: [...change.softmax(a)],
    marks: [0.301, 0.299].map((sink) => change.mark({ sink, diagonal: 0.2, previous: 0, slash: 0 })),
  };
}

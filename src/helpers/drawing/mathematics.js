// The mathematics that moves. Each function is the Python function of the same name; tests/drawings.test.mjs holds them equal.

/** rope.frequencies: the angle of each pair a token, fastest first. */
export const frequencies = (width, base) => Array.from({ length: width / 2 }, (_, k) => base ** ((-2 * k) / width));

/** rope.cosine_sum: the logit of two equal vectors of ones in each pair, at a distance. */
export const cosineSum = (distance, width, base) => frequencies(width, base).reduce((sum, theta) => sum + Math.cos(distance * theta), 0);

/** attention.influence of uniform causal attention: the last row, what each of n tokens gives to the last one through the layers. */
export const uniformInfluence = (n, layers) => {
  let row = Array.from({ length: n }, (_, j) => (j === n - 1 ? 1 : 0));
  for (let layer = 0; layer < layers; layer += 1) {
    let later = 0;
    const next = Array(n);
    for (let j = n - 1; j >= 0; j -= 1) next[j] = later += row[j] / (j + 1);
    row = next;
  }
  return row;
};

const BITS = { fp32: 24, fp16: 11, bf16: 8 };
/** collapse.round_to, for numbers that are neither very large nor very small: to the nearest, ties to even. */
export const roundTo = (x, type) => {
  if (x === 0) return 0;
  const step = 2 ** (Math.floor(Math.log2(Math.abs(x))) - BITS[type] + 1);
  const [steps, low] = [x / step, Math.floor(x / step)];
  const up = steps - low > 0.5 || (steps - low === 0.5 && low % 2 !== 0);
  return (low + up) * step;
};

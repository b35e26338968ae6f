// The mathematics that moves. Each function is the Python function of the same name; tests/drawings.test.mjs holds them equal.

/** rope.frequencies: the angle of each pair a token, fastest first. */
export const frequencies = (width, base) => Array.from({ length: width / 2 }, (_, k) => base ** ((-2 * k) / width));

/** rope.cosine_sum: the logit of two equal vectors of ones in each pair, at a distance. */
export const cosineSum = (distance, width, base) => frequencies(width, base).reduce((sum, theta) => sum + Math.cos(distance * theta), 0);

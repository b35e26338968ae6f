// Trains the race's decoders as the page does, under node, and prints a table: what data/page_trained.csv holds, or a time.
//   node benchmarks/train.mjs retrieval 0-14 RoPE:0:softmax none:0:softmax
//   node benchmarks/train.mjs time        milliseconds a step, the fastest fifth of 200, in both kinds of number
import { begun, entryOf, LENGTHS, run, stepped } from "../frontend/live/race.js";

const [task, range = "0-0", ...designs] = process.argv.slice(2), [low, high] = range.split("-").map(Number);
const read = (named) => {
  const [positions, window, map] = named.split(":");
  return { positions, window: Number(window), map };
};
if (task === "time") {
  for (const Numbers of [Float64Array, Float32Array]) for (const each of ["retrieval", "last", "counting"]) {
    const own = begun(read("RoPE:0:softmax"), each, 0, { Numbers }), taken = [];
    for (let step = 1; step <= 200; step += 1) {
      const start = performance.now();
      stepped(own, each, 0, step);
      taken.push(performance.now() - start);
    }
      console.log(
        [
          Numbers.name,
          each,
          (
            taken
              .sort((a, b) => a - b)
              .slice(0, 40)
              .reduce((a, b) => a + b, 0) / 40
          ).toFixed(1),
          `${(own.bytes / 1e6).toFixed(1)} MB`,
        ].join(","),
      );
  }
} else {
  console.log(
    [
      "task",
      "entry",
      "design",
      "seed",
      "learned",
      "steps",
      ...LENGTHS.map((n) => `score_${n}`),
      "seconds",
    ].join(","),
  );
  for (const named of designs)
    for (let seed = low; seed <= high; seed += 1) {
      const start = performance.now(),
        found = run(read(named), task, seed, { Numbers: Float64Array, tokens: 640, longest: 132 });
      const scores = found.right.map(({ right, of }) => (right / of).toFixed(5)),
        entry = entryOf(read(named));
      console.log(
        [
          task,
          entry.includes(",") ? `"${entry}"` : entry,
          named,
          seed,
          Number(found.learned),
          found.steps,
          ...scores,
          ((performance.now() - start) / 1000).toFixed(1),
        ].join(","),
      );
  }
}

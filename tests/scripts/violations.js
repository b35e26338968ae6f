// All that axe finds: each with three places.
async () =>
  (await axe.run({ preload: false })).violations.map(
    (v) => v.id + ": " + v.nodes.map((n) => n.target.join(" ")).slice(0, 3),
  );

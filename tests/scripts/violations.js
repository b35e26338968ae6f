// All that axe finds: each with three places.
async () => (await axe.run()).violations.map(v => v.id + ': ' + v.nodes.map(n => n.target.join(' ')).slice(0, 3))

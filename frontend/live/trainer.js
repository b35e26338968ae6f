// The worker of "Train it here": it trains, and between two steps answers what the page asks.
import {
  begun,
  CHECKED,
  fromFile,
  learned,
  LENGTHS,
  look,
  right,
  RATE,
  STEPS,
  stepped,
  TASKS,
  toFile,
} from "./race.js";

const room = { Numbers: Float64Array, tokens: 640, longest: 516 }, LOOKED = 10, FAR = 8;
const stops = import("./stops.js"); // nobody waits for it
let own = null, run = null, turn = 0;

// Messages come in between two steps; unlike a timer, a channel is not slowed down in a hidden tab.
const channel = new MessageChannel();
const breath = () => new Promise((resolve) => {
  channel.port1.onmessage = resolve;
  channel.port2.postMessage(null);
});

const share = (n, rows) => {
  const found = right(own, run.task, run.seed, n, rows);
  return { n, share: found.right / found.of, of: found.of };
};
const few = (task) => TASKS[task].tested / (task === "retrieval" ? 4 : 2);
const ended = () => ({ ...run, right: LENGTHS.map((n) => share(n)), picture: look(own, run.task, 16) });

const calls = {
  async train({ design, task, seed, rate, on }) {
    const mine = (turn += 1);
    if (!on || !run) {
      own = begun(design, task, seed, room);
      run = { design, task, seed, rate, steps: 0, learned: false, spent: 0 };
    }
    let losses = [];
    while (mine === turn && !run.learned && run.steps < STEPS) {
      const start = performance.now();
      losses.push(stepped(own, run.task, run.seed, (run.steps += 1), run.rate));
      run.spent += performance.now() - start;
      if (run.steps % CHECKED === 0) run.learned = learned(own, run.task);
      if (run.steps % LOOKED === 0 || run.steps === 1) {
        const now = [16, 64].map((n) => share(n, few(run.task)).share);
        postMessage({ steps: run.steps, spent: run.spent, losses, now, picture: look(own, run.task, 16) });
        losses = [];
      }
      await breath();
    }
    if (losses.length) postMessage({ steps: run.steps, spent: run.spent, losses });
    return { stopped: mine !== turn, ...ended() };
  },
  stop: () => { turn += 1; },
  at({ n }) {
    return { ...share(n, n > LENGTHS.at(-1) ? FAR : undefined), picture: look(own, run.task, n) };
  },
  act: async (asked) => (await stops).acted(own, run, asked),
  file: ({ facts }) => toFile(own, facts),
  load({ bytes }) {
    turn += 1;
    const found = fromFile(bytes, room);
    own = found.own;
    run = {
      design: own.design,
      task: found.task,
      seed: Number(found.facts.seed) || 0,
      rate: Number(found.facts.rate) || RATE,
      steps: Number(found.facts.steps) || 0,
      learned: false,
      spent: 0,
    };
    run.learned = learned(own, run.task);
    return { facts: found.facts, ...ended() };
  },
};

onmessage = async ({ data: { call, number, ...rest } }) => {
  try {
    postMessage({ number, value: await calls[call](rest) });
  } catch (error) {
    postMessage({ number, error: error.message });
  }
};

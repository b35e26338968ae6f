// Where the chapters' experiments start: a prompt, what is changed, and what to look at.
const link = (state) => `#${new URLSearchParams(state)}`;
const START = "<|im_start|>";
const fox = `${START}The quick brown fox jumps over the lazy dog. The quick brown fox jumps over the lazy`;
const ones = (n) => Array(n).fill("1").join("");
const copy = (digits, place) =>
  `${START}user\nHere is a string of digits: ${digits}. What is its ${place} digit?<|im_end|>\n${START}assistant\nThe answer to your question is: `;

export const PRESETS = [
  {
    name: "A fox, twice",
    about:
      "A sentence begins for the second time. Which heads attend to the previous token, and which heads attend to the first sentence?",
    link: link({ prompt: fox, view: "next" }),
  },
  {
    name: "2 · The first token hidden",
    about: "Most heads put much of their attention on the first token. Hide it, and see where the sinks go.",
    link: link({ prompt: fox, view: "heads", first: true }),
  },
  {
    name: "2 · Influence",
    about: "Hide one token after the other, and see which token influences the last token most.",
    link: link({ prompt: fox, view: "heard" }),
  },
  {
    name: "3 · n ones against n + 1 ones",
    about: "The second prompt has one more 1 at its end. How far apart are the last states of the two prompts?",
    link: link({ prompt: START + ones(32), second: START + ones(33), view: "pair" }),
  },
  {
    name: "3 · A separator every three tokens",
    about: "The same pair of prompts, with a comma after every three tokens.",
    link: link({ prompt: START + ones(30), second: START + ones(33), view: "pair", every: 3 }),
  },
  {
    name: "4 · Copy the last digit",
    about: "Only the last digit is 0. How large is the margin of 0 over 1, compared with the prompt without the 0?",
    link: link({ prompt: copy(`${ones(11)}0`, "last"), second: copy(ones(12), "last"), view: "pair" }),
  },
  {
    name: "4 · The question swapped",
    about: "The same digits, but the question asks for the first digit, so the 0 should not matter.",
    link: link({ prompt: copy(`${ones(11)}0`, "first"), second: copy(ones(12), "first"), view: "pair" }),
  },
  {
    name: "5 · The fast quarter of RoPE off",
    about:
      "The fastest quarter of the pairs shows which tokens are neighbours. Take it away. Which heads lose their slash?",
    link: link({ prompt: fox, view: "heads", quarters: "ottt", layer: 17, head: 1 }),
  },
  {
    name: "5 · The slow quarter of RoPE off",
    about: "The slowest pairs hardly rotate within a prompt. What do the heads lose without these pairs?",
    link: link({ prompt: fox, view: "heads", quarters: "ttto" }),
  },
  {
    name: "5 · A base of 1,000",
    about: "All pairs rotate faster than in training.",
    link: link({ prompt: fox, view: "heads", base: 1000 }),
  },
  {
    name: "6 · Colder heads",
    about: "At half the temperature all heads are sharper, without any training.",
    link: link({ prompt: fox, view: "heads", temperature: 0.5 }),
  },
];

// What becomes of a question that was marked, when it is due, and how Anki gets it.
async () => {
  const { marked, isDue, anki } = await import("./frontend/answers/cards.js");
  const day = 86_400_000, hour = day / 24;
  const known = marked(undefined, true, 0, 2), twice = marked(known, true, 0, 3), thrice = marked(twice, true, 0, 4);
  const missed = marked(twice, false, 0, 4);
  return {
    known,
    missed,
    due: {
      "same lesson": isDue(known, 2, 2, hour),
      "next lesson": isDue(known, 2, 3, hour),
      "two lessons on": isDue(twice, 2, 4, hour) && !isDue(twice, 2, 3, hour),
      "a week on": isDue(thrice, 2, 2, 7 * day) && !isDue(thrice, 2, 6, 3 * day),
      "next day": isDue(known, 2, 2, day),
      "missed, next lesson": isDue(missed, 2, 5, hour) && !isDue(missed, 2, 4, hour),
      "front page, next day": isDue(known, 2, 0, day) && !isDue(known, 2, 0, hour),
      "just marked": isDue(known, 2, 3, 1000),
    },
    anki: anki([
      {
        id: "a",
        chapter: 2,
        ask: 'What is <span class="math notranslate nohighlight">\\(x\\)</span>?',
        answer: "It is\n1.",
      },
      { id: "b", chapter: 3, ask: '"It fades." Refute it.', answer: "No." },
    ]),
  };
}

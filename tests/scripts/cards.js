// What becomes of a question that was marked, when it is due, and how Anki gets it.
async () => {
  const { marked, isDue, anki } = await import("./frontend/answers/cards.js");
  const day = 86_400_000, known = marked(undefined, true, 0), twice = marked(known, true, 0), thrice = marked(twice, true, 0);
  return {
    known,
    missed: marked(twice, false, 0),
    due: {
      "same lesson": isDue(known, 2, 2, day / 2),
      "next lesson": isDue(known, 2, 3, day / 2),
      "two lessons on": isDue(twice, 2, 4, day / 2) && !isDue(twice, 2, 3, day / 2),
      "a week on": isDue(thrice, 2, 2, 7 * day) && !isDue(thrice, 2, 6, 3 * day),
      "next day": isDue(known, 2, 2, day),
    },
    anki: anki([{ id: "a", chapter: 2, ask: 'What is <span class="math notranslate nohighlight">\\(x\\)</span>?', answer: "It is\n1." }]),
  };
}

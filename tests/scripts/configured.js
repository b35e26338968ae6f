// What the page that reads a configuration says: facts and rows in both languages, or the refusal.
async ({ shipped, cases }) => {
  const page = await import('./frontend/live/configuration.js');
  page.use(shipped);
  return cases.map(({ text, tokens }) => {
    try {
      const facts = page.facts(page.parsed(text), tokens);
      const said = Object.fromEntries(["en", "zh"].map((language) => [language, page.rows(facts, language)]));
      return { facts, said, short: page.short(said.en, facts.tokens) };
    } catch (error) {
      if (!(error instanceof page.Refused)) throw error;
      return { refused: error.key, said: { en: error.said("en"), zh: error.said("zh") } };
    }
  });
}

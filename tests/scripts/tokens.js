// The page's tokens of each text.
async ({ tokenizer, config, texts }) => {
  const { Tokenizer } = await import('./frontend/dist/live/tokenizers.min.mjs');
  const read = new Tokenizer(tokenizer, config);
  return texts.map((text) => (text ? read.encode(text, { add_special_tokens: false }).ids : []));
}

// What one reading of the model found: all maps, and the logits of the last token.
side => ({ maps: [...window.found[side].attentions], last: [...window.found[side].logits.slice(-49152)] })

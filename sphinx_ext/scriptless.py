"""Tell readers without JavaScript what does not work.

`course.css` hides the controls that would have no effect.
"""

import re

FORMULAS = "JavaScript is off: formulas stand as TeX."
SENTENCES = {
    r'<figure class="(?:explore|drawing)"[^>]*>': (
        "JavaScript is off, so this figure shows only its first state."
    ),
    r'<figure class="atlas"[^>]*>': "JavaScript is off, which draws the maps here.",
    r'<div class="prediction" data-asks[^>]*>': "JavaScript is off: a guess is not kept.",
}


def said(sentence: str) -> str:
    """Return a sentence as HTML that only browsers without JavaScript show."""
    return f'<noscript><p class="scriptless">{sentence}</p></noscript>'


def explained(body: str) -> str:
    """Add a sentence to each part of a page that needs a script."""
    for opening, sentence in SENTENCES.items():
        body = re.sub(f"({opening})", rf"\1{said(sentence)}", body)
    return (said(FORMULAS) if 'class="math' in body else "") + body


def explain(app, pagename, templatename, context, doctree):
    """Add the sentences for readers without JavaScript to the text of a page."""
    if "body" in context:
        context["body"] = explained(context["body"])


def setup(app):
    app.connect("html-page-context", explain)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}

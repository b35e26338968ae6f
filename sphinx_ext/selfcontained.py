"""Drop what would make a page ask another host for something, or load a script twice."""


def drop_thebe(app, pagename, templatename, context, doctree):
    context["script_files"] = [
        s for s in context.get("script_files", []) if "thebe" not in str(getattr(s, "filename", s)).lower()
    ]


def setup(app):
    app.connect("html-page-context", drop_thebe, priority=900)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}

"""Remove the scripts of sphinx-thebe, which Jupyter Book always loads.

They refer to another host and declare a name twice.
"""


def drop_thebe(app, pagename, templatename, context, doctree):
    """Remove the scripts of sphinx-thebe from a page."""

    def wanted(script):
        name = getattr(script, "filename", script)
        attributes = getattr(script, "attributes", "")
        return "thebe" not in f"{name} {attributes}".lower()

    context["script_files"] = [
        script for script in context.get("script_files", []) if wanted(script)
    ]


def setup(app):
    app.connect("html-page-context", drop_thebe, priority=900)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}

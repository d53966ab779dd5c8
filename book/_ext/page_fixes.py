"""Take out of the pages what would ask the network, and mend one ARIA role.

Jupyter Book 1.x always loads sphinx-thebe, whose script and style live on a foreign host.
The book runs no kernel inside its pages, so every trace of it goes.
"""

THEBE_EVENTS = ("builder-inited", "env-before-read-docs", "doctree-resolved")


def remove_thebe(app, config):
    """Disconnect sphinx-thebe's listeners and drop its files before any page is written."""
    for event in THEBE_EVENTS:
        for listener in list(app.events.listeners.get(event, [])):
            if listener.handler.__module__ == "sphinx_thebe":
                app.disconnect(listener.id)
    config.html_css_files = [
        entry for entry in config.html_css_files if "thebe" not in str(entry)
    ]
    app.registry.css_files[:] = [
        entry for entry in app.registry.css_files if "thebe" not in entry[0]
    ]


def mend_bibliography_role(app, pagename, templatename, context, doctree):
    """A ``list`` role needs ``listitem`` children; the citations are none, so the role goes."""
    if "body" in context:
        context["body"] = context["body"].replace(
            '<div role="list" class="citation-list">',
            '<div class="citation-list">',
        )


def setup(app):
    app.connect("config-inited", remove_thebe, priority=900)
    app.connect("html-page-context", mend_bibliography_role)
    return {"parallel_read_safe": True, "parallel_write_safe": True}

"""What each page tells about itself: when its text changed, the script behind it, how large its pictures are."""

import base64
import re
import shutil
import subprocess
from io import BytesIO
from pathlib import Path

import imagesize

# Pages that follow from other files than their own, as paths or folders of the repository.
FOLLOWS_FROM = {
    "book/index": ["book/chapters.yml", "book/map.yml", "_toc.yml"],
    "book/map": ["book/chapters.yml", "book/map.yml", "_toc.yml"],
    "book/bibliography": ["book/references.bib", "book/map.yml"],
    "book/ledger": ["book"],
    "book/benchmarks": ["benchmarks/results.json"],
    "book/changelog": ["CHANGELOG.md"],
    "book/cite": ["CITATION.cff"],
    "book/about": ["locbook/datasets/README.md"],
    "book/api": ["locbook"],
    "book/api/for_authors": ["locbook"],
}


def commit_dates(root):
    """``{file: date of its last commit}``; empty where there is no history."""
    command = [
        "git",
        "-C",
        str(root),
        "log",
        "--format=%x00%cs",
        "--name-only",
    ]
    try:
        log = subprocess.run(
            command, capture_output=True, text=True, check=True
        ).stdout
    except (OSError, subprocess.CalledProcessError):
        return {}
    dates = {}
    for commit in log.split("\0")[1:]:
        date, *files = commit.split("\n")
        for file in filter(None, files):
            dates.setdefault(file, date)
    return dates


def last_change(docname, source, dates):
    """Date of the last commit that changed what a page shows, or None."""
    behind = [source, *FOLLOWS_FROM.get(docname, ())]
    if source.endswith(".ipynb"):
        behind.append(source.removesuffix(".ipynb") + ".py")
    if docname.startswith("book/api/"):
        behind.append(f"locbook/{docname.rpartition('/')[2]}")
    found = [
        date
        for file, date in dates.items()
        if any(file == b or file.startswith(f"{b}/") for b in behind)
    ]
    return max(found, default=None)


def tell_date(app, pagename, templatename, context, doctree):
    """Fill the theme's line "Last updated"; by the history, so that a new build changes nothing."""
    if doctree is None:
        return
    if not hasattr(app, "locbook_dates"):
        app.locbook_dates = commit_dates(app.srcdir)
    source = str(app.env.doc2path(pagename, base=False))
    context["last_updated"] = last_change(pagename, source, app.locbook_dates)


def offer_script(app, pagename, templatename, context, doctree):
    """Beside the notebook, the download button offers the script."""
    for button in context.get("header_buttons", ()):
        if button.get("label") == "download-buttons" and _script(
            app, pagename
        ):
            script = context["pathto"](f"_sources/{pagename}.py", 1)
            button["buttons"].insert(
                1,
                {
                    "type": "link",
                    "url": script,
                    "text": ".py",
                    "icon": "fas fa-file-code",
                    "label": "download-script-button",
                    "tooltip": "Download script",
                },
            )


def _script(app, docname):
    """The script of a chapter, or None."""
    if docname not in app.env.found_docs:
        return None
    script = Path(app.env.doc2path(docname)).with_suffix(".py")
    return script if script.exists() else None


def copy_scripts(app, exception):
    """Put the scripts where the notebooks are offered."""
    if exception or app.builder.format != "html":
        return
    for docname in app.env.found_docs:
        script = _script(app, docname)
        if script:
            target = Path(app.outdir) / "_sources" / f"{docname}.py"
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(script, target)


IMAGE = re.compile(
    r'<img (?![^>]*\bwidth=)(?P<rest>[^>]*?\bsrc="(?P<src>[^"]+)"[^>]*)>'
)


def size_of(source, files):
    """Width and height of a picture that lies in the page or in ``files``, a dictionary by name."""
    if source.startswith("data:image/png;base64,"):
        start = source.partition(",")[2][
            :64
        ]  # a PNG says it in its first 24 bytes
        return imagesize.get(BytesIO(base64.b64decode(start)))
    path = files.get(source.rpartition("/")[2])
    return imagesize.get(path) if path else (-1, -1)


def with_sizes(body, files):
    """Give pictures their size, so that the text does not jump when they come."""

    def sized(match):
        width, height = size_of(match["src"], files)
        if width <= 0 or height <= 0:
            return match.group(0)
        return f'<img width="{round(width)}" height="{round(height)}" {match["rest"]}>'

    return IMAGE.sub(sized, body)


def size_images(app, pagename, templatename, context, doctree):
    """Do so on each page."""
    if "body" in context and app.builder.format == "html":
        files = {
            name: str(Path(app.srcdir) / path)
            for path, name in app.builder.images.items()
        }
        context["body"] = with_sizes(context["body"], files)


def setup(app):
    app.connect("html-page-context", tell_date)
    app.connect("html-page-context", offer_script, priority=900)
    app.connect("html-page-context", size_images)
    app.connect("build-finished", copy_scripts)
    return {"parallel_read_safe": True, "parallel_write_safe": True}

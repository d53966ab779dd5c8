"""Figures and sliders: each says what one sees, has a caption, and is not too heavy."""

from pathlib import Path

import nbformat

from locbook.plotting import MAX_SLIDER_BYTES
from tools.checks.markup import elements

MAX_FIGURE_BYTES = 150_000


def figure_faults(notebook: Path) -> list[str]:
    """Check every picture that a notebook stores."""
    faults = []
    for number, cell in enumerate(nbformat.read(notebook, as_version=4).cells):
        if cell.cell_type == "code":
            where = f"{notebook.name}: cell {number}"
            pictures = [
                o.data for o in cell.outputs if any(kind.startswith("image/") for kind in o.get("data", {}))
            ]
            faults += [
                f"{where}: {fault}" for fault in _picture_faults(pictures, cell.metadata.get("mystnb", {}))
            ]
            for output in cell.outputs:
                faults += [
                    f"{where}: {fault}"
                    for fault in _slider_faults(output.get("data", {}).get("text/html", ""))
                ]
    return faults


def _picture_faults(pictures, metadata):
    if not pictures:
        return []
    faults = []
    if len(pictures) > 1:
        faults.append("more than one figure; one caption and one alternative text fit one")
    figure = metadata.get("figure", {})
    if not figure.get("caption", "").strip():
        faults.append("the figure has no caption (mystnb: figure: caption)")
    if not figure.get("name", "").strip():
        faults.append("the figure has no name to refer to (mystnb: figure: name)")
    faults += alt_faults(metadata.get("image", {}).get("alt", ""))
    for picture in pictures:
        for kind, content in picture.items():
            if kind.startswith("image/"):
                weight = len(content) * 3 // 4 if kind == "image/png" else len(content)
                if weight > MAX_FIGURE_BYTES:
                    faults.append(f"the figure weighs {weight:,} bytes, allowed are {MAX_FIGURE_BYTES:,}")
    return faults


def _slider_faults(html):
    faults = []
    page = elements(html)
    for slider in (e for e in page if e.tag == "figure" and e.has_class("lb-slider")):
        if len(html) > MAX_SLIDER_BYTES:
            faults.append(f"the slider weighs {len(html):,} bytes, allowed are {MAX_SLIDER_BYTES:,}")
        if not any(e.tag == "figcaption" and e.inside(slider) and e.text.strip() for e in page):
            faults.append("the slider has no caption (slider(..., caption=...))")
    for image in (e for e in page if e.tag == "img"):
        faults += alt_faults(image.attributes.get("alt", ""))
    return faults


def alt_faults(alt: str) -> list[str]:
    """What is wrong with an alternative text; the toolchain's default is the file's name."""
    alt = alt.strip()
    if not alt:
        return ["no alternative text (mystnb: image: alt)"]
    if "_images/" in alt or alt.lower().endswith((".png", ".svg", ".jpg")):
        return [f"the alternative text {alt!r} is a file's name"]
    if len(alt.split()) < 3:
        return [f"the alternative text {alt!r} does not say what one sees"]
    return []


def page_image_faults(page: Path) -> list[str]:
    """Check the alternative texts of a built page, whatever road they came by."""
    faults = []
    for image in (e for e in elements(page.read_text(encoding="utf-8")) if e.tag == "img"):
        if any(parent.tag == "article" for parent in image.parents):
            faults += [f"{page.name}: {fault}" for fault in alt_faults(image.attributes.get("alt", ""))]
    return faults

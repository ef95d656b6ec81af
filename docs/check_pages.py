"""Fail if a built page has a dead link within the site, or would load anything from the network.

``python docs/check_pages.py docs/_build/html`` reads every page: links must lead to a file, and to an element of that name where
they name one; scripts, styles, pictures and frames must be files of the site. Links that a reader may follow elsewhere are
not visited.
"""

from __future__ import annotations

import re
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

#: What a browser fetches by itself when it shows a page.
LOADED = {
    ("script", "src"),
    ("img", "src"),
    ("img", "srcset"),
    ("source", "srcset"),
    ("iframe", "src"),
    ("video", "src"),
    ("audio", "src"),
    ("object", "data"),
    ("embed", "src"),
}
#: Links of the head that tell of other pages, and fetch nothing.
TOLD = {"author", "canonical", "index", "license", "next", "prev", "search", "copyright"}
#: A style may load a file, too.
STYLE = re.compile(r"""(?:url\(\s*['"]?|@import\s+['"])([^'")\s]+)""")


class Page(HTMLParser):
    """What a page holds: names of its elements, links, and files that are loaded with it."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.names: set[str] = {"", "top"}
        self.links: set[str] = set()
        self.loaded: set[str] = set()
        self.feed(text)
        self.loaded |= {
            found for style in re.findall(r"<style.*?</style>", text, re.S) for found in STYLE.findall(style)
        }

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        self.names |= {given[name] for name in ("id", "name") if name in given}
        if tag == "a" and "href" in given:
            self.links.add(given["href"])
        if tag == "link" and not TOLD & set(given.get("rel", "").split()):
            self.loaded.add(given.get("href", ""))
        for name in given.keys() & {attribute for element, attribute in LOADED if element == tag}:
            several = given[name].split(",") if name == "srcset" else [given[name]]
            self.loaded |= {part.split()[0] for part in several if part.strip()}


def dead(site: Path, at: Path, target: str, pages: dict[Path, Page]) -> bool:
    """Whether there is no file, or no element of the name, behind a link of the site."""
    parts = urlsplit(target)
    path = (at.parent / unquote(parts.path)).resolve() if parts.path else at
    if path.is_dir():
        path /= "index.html"
    if not path.is_file() or not path.is_relative_to(site):
        return True
    return path in pages and unquote(parts.fragment) not in pages[path].names


def elsewhere(target: str) -> bool:
    """Whether a link leaves the site."""
    parts = urlsplit(target)
    return bool(parts.netloc) or parts.scheme in {"http", "https", "mailto"}


def faults(site: Path) -> list[str]:
    """What is wrong, one line each."""
    # What a theme keeps beside its scripts are templates, not pages.
    paths = [path for path in sorted(site.rglob("*.html")) if "_static" not in path.relative_to(site).parts]
    pages = {path: Page(path.read_text("utf-8")) for path in paths}
    if not pages:
        return [f"there are no pages in {site}."]
    found = []
    for path, page in pages.items():
        name = path.relative_to(site)
        here = {target for target in page.links | page.loaded if not elsewhere(target)}
        inside = {target for target in here if urlsplit(target).scheme == ""}
        found += [f"{name}: nothing behind {target}" for target in sorted(inside) if dead(site, path, target, pages)]
        found += [f"{name}: loads {target}" for target in sorted(page.loaded) if elsewhere(target)]
    for style in sorted(site.rglob("*.css")):
        name, named = style.relative_to(site), STYLE.findall(style.read_text("utf-8"))
        inside = [target for target in named if not elsewhere(target) and urlsplit(target).scheme == ""]
        found += [f"{name}: nothing behind {target}" for target in inside if dead(site, style, target, pages)]
        found += [f"{name}: loads {target}" for target in named if elsewhere(target)]
    return found


def main(site: Path) -> None:
    """Say what is wrong, or how much was looked at."""
    found = faults(site.resolve())
    if found:
        sys.exit("\n".join(found))
    print("links within the site lead somewhere, and nothing is loaded from the network")


if __name__ == "__main__":
    main(Path(sys.argv[1]))

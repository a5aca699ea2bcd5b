"""book_links.py: a preprocessor of mdBook. Links that lead out of docs become links to the repository.
book_links.py --check FOLDER: fails if a link of a built book leads nowhere.
"""

import html.parser
import json
import posixpath
import re
import sys
from pathlib import Path
from urllib.parse import unquote, urlsplit

ROOT = Path(__file__).resolve().parent.parent
REPOSITORY = re.search(r'^repository = "(.+)"', (ROOT / "Cargo.toml").read_text(), re.MULTILINE)[1]


def absolute_links(text, folder):
    """The text of a chapter whose file is in this folder of docs."""

    def absolute(match):
        path, hash_sign, anchor = match[1].partition("#")
        target = posixpath.normpath(posixpath.join("docs", folder, path))
        if not path.startswith("..") or target.startswith("docs/"):
            return match[0]
        return f"]({REPOSITORY}/blob/main/{target}{hash_sign}{anchor})"

    return re.sub(r"\]\(([^)\s]+)\)", absolute, text)


def change_chapters(items):
    for item in items:
        chapter = item.get("Chapter") if isinstance(item, dict) else None
        if chapter:
            folder = posixpath.dirname(chapter.get("path") or "")
            chapter["content"] = absolute_links(chapter["content"], folder)
            change_chapters(chapter["sub_items"])


class Page(html.parser.HTMLParser):
    def __init__(self, path):
        super().__init__()
        self.links, self.anchors = [], {"", "top"}
        self.feed(path.read_text())

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        self.anchors.add(attributes.get("id") or "")
        self.links += [attributes[name] for name in ("href", "src") if attributes.get(name)]


def check(book):
    """The links of all pages that lead to no file, or to no anchor of a page."""
    # print.html repeats all pages, and 404.html is shown at any address.
    paths = [path for path in book.rglob("*.html") if path.name not in ("print.html", "404.html", "toc.html")]
    pages = {path: Page(path) for path in paths}
    wrong = []
    for path, page in pages.items():
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            if target.is_dir():
                target /= "index.html"
            anchors = pages[target].anchors if target in pages else None
            if not target.exists() or (anchors and unquote(parts.fragment) not in anchors):
                wrong.append(f"{path.relative_to(book)}: {link}")
    if wrong:
        sys.exit("\n".join(["these links lead nowhere:", *sorted(set(wrong))]))
    print(f"book: {len(pages)} pages, all links lead somewhere")


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["supports", _]:
            pass
        case ["--check", folder]:
            check(Path(folder).resolve())
        case []:
            _, book = json.load(sys.stdin)
            change_chapters(book.get("items") or book.get("sections") or [])
            json.dump(book, sys.stdout)
        case _:
            sys.exit(__doc__)

#!/usr/bin/env python3
"""Checks that each link to a page and its heading leads somewhere: `](page.md#anchor)` in the pages, and
`docs/<page>.md "Heading"` in comments and texts. Prints the offences; its exit status is 1 if there are any."""

import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
LINK = re.compile(r"\]\(([^()\s]*?)(?:#([^()\s]*))?\)")
# A comment may break the line between the page and its heading, or within the heading.
BREAK = r"(?:\s*\n\s*(?://+|\#|\*)?\s*|\s+)"
QUOTED = re.compile(r'docs/([a-z]+\.md)(?:,|\))?' + BREAK + r'"([A-Z][^"]{2,80})"')


def headings(page: pathlib.Path) -> list[str]:
    found, code = [], False
    for line in page.read_text().splitlines():
        if line.startswith("```"):
            code = not code
        elif not code and (match := re.match(r"#{1,6} (.*)", line)):
            found.append(match[1].strip())
    return found


def anchor(heading: str) -> str:
    """The anchor that GitHub gives a heading."""
    text = re.sub(r"[`*]|\[([^]]*)\]\([^)]*\)", r"\1", heading).lower()
    return re.sub(r"[^\w\- ]", "", text).replace(" ", "-")


def prose(text: str) -> str:
    """A page without its blocks of code, each line kept for its number."""
    lines, code = [], False
    for line in text.split("\n"):
        fence = line.startswith("```")
        lines.append("" if fence or code else line)
        code ^= fence
    return "\n".join(lines)


def offences_of(path: pathlib.Path) -> list[str]:
    try:
        text = path.read_text()
    except UnicodeDecodeError:
        return []
    found = []

    def offence(position: int, what: str) -> None:
        line = text.count("\n", 0, position) + 1
        found.append(f"{path.relative_to(ROOT)}:{line}: {what}")

    if path.suffix == ".md":
        for match in LINK.finditer(prose(text)):
            target, part = match[1], match[2]
            if "://" in target or target.startswith("mailto:"):
                continue
            page = (path.parent / target).resolve() if target else path
            line = prose(text).count("\n", 0, match.start()) + 1
            if not page.exists():
                found.append(f"{path.relative_to(ROOT)}:{line}: there is no {target}")
            elif part and page.suffix == ".md" and part not in map(anchor, headings(page)):
                found.append(f"{path.relative_to(ROOT)}:{line}: {target or path.name} has no heading #{part}")
    for match in QUOTED.finditer(text):
        page, heading = ROOT / "docs" / match[1], re.sub(BREAK, " ", match[2])
        if not page.exists():
            offence(match.start(), f"there is no docs/{match[1]}")
        elif heading not in headings(page):
            offence(match.start(), f'docs/{match[1]} has no heading "{heading}"')
    return found


def main() -> int:
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    found = [what for name in listed.split("\0") if name for what in offences_of(ROOT / name)]
    print("\n".join([*found, f"{len(found)} broken links"]))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())

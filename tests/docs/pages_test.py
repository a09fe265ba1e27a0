# SPDX-License-Identifier: Apache-2.0
"""The pages are true of the tree: every link leads somewhere, every file that they name is there.

Reads the tree itself, of which Bazel knows nothing; found through the link that Bazel made to this
file.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("frontends/**/*.md"),
                *ROOT.glob("deploy/**/*.md"), *ROOT.glob("bridge/**/*.md")])

LINK = re.compile(r"\]\((?!https?://|#|mailto:)([^)#\s]+)(?:#[^)]*)?\)")
# A file of ours in code quotes, named from the root: `bridge/net/task.h`.
NAMED = re.compile(r"`((?:bridge|frontends|tests|proto|third_party|docs)/[\w./-]+\.\w+)`")


def test_this_is_the_tree() -> None:
    assert (ROOT / "WORKSPACE").is_file()
    assert len(PAGES) >= 5


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_and_named_files_exist(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    missing = [link for link in LINK.findall(text) if not (page.parent / link).exists()]
    missing += [name for name in NAMED.findall(text) if not (ROOT / name).exists()]
    assert missing == []


def test_every_page_of_docs_is_on_the_list() -> None:
    index = (ROOT / "docs/README.md").read_text(encoding="utf-8")
    for page in ROOT.glob("docs/*.md"):
        assert page.name == "README.md" or f"]({page.name})" in index, page.name


def test_the_readme_names_both_commands() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    for command in ("./quickstart", "./test"):
        assert f"\n{command} " in readme
        assert (ROOT / command).stat().st_mode & 0o111

"""Hooks of MkDocs: the pages of window types, and mermaid for the pages that have a diagram."""

import re
import sys
from pathlib import Path
from typing import Any

from mkdocs.exceptions import Abort
from mkdocs.structure.files import File, Files

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tools.docs import mermaid, models
from tools.offline_cluster.say import Failure

SCRIPT = "assets/mermaid.min.js"
_TAG = re.compile(rf'<script src="[^"]*{re.escape(SCRIPT)}"[^>]*></script>')


def on_config(config: Any) -> Any:
    """Fill in the pages of the window types, in the order of their list."""
    config["nav"] = models.navigation(config["nav"])
    return config


def on_files(files: Files, config: Any) -> Files:
    """Add the script, which `extra_javascript` names."""
    try:
        path = mermaid.script()
    except Failure as failure:
        raise Abort(str(failure)) from None
    files.append(File.generated(config, SCRIPT, abs_src_path=str(path)))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Give the room of the table of contents to the text where there are no sections."""
    if "\n## " not in markdown:
        page.meta.setdefault("hide", ["toc"])
    return markdown


def on_post_page(output: str, **_: Any) -> str:
    """Take the script, 3 MB, out of a page without a diagram."""
    return output if 'class="mermaid"' in output else _TAG.sub("", output)

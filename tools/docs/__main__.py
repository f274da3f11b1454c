"""`python -m tools.docs`: write what is made of the code, in the pages and as whole pages."""

from tools import ROOT
from tools.docs.blocks import filled, pages
from tools.docs.models import window_pages


def main() -> None:
    """Write what has changed, and print the names of its pages."""
    fresh = {page: filled(page.read_text(encoding="utf-8")) for page in pages()} | window_pages()
    for page, text in fresh.items():
        if not page.is_file() or page.read_text(encoding="utf-8") != text:
            page.write_text(text, encoding="utf-8")
            print(page.relative_to(ROOT))


if __name__ == "__main__":
    main()

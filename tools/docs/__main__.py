"""`python -m tools.docs`: write the blocks of the pages that are made of the code."""

from tools import ROOT
from tools.docs.blocks import filled, pages


def main() -> None:
    """Write the pages whose blocks have changed, and print their names."""
    for page in pages():
        text = page.read_text(encoding="utf-8")
        if (fresh := filled(text)) != text:
            page.write_text(fresh, encoding="utf-8")
            print(page.relative_to(ROOT))


if __name__ == "__main__":
    main()

"""Images in the nodes of the local cluster."""

from tools import images


def test_images_that_have_lost_their_tag_are_forgotten() -> None:
    listed = """REF TYPE DIGEST SIZE PLATFORMS LABELS
docker.io/espha/engine:0.1.0 application/x sha256:new 1 GiB linux/amd64 -
docker.io/espha/engine:next application/x sha256:kept 1 GiB linux/amd64 -
import-2026-11-24@sha256:old application/x sha256:old 1 GiB linux/amd64 -
import-2026-11-24@sha256:new application/x sha256:new 1 GiB linux/amd64 -
sha256:1 application/x sha256:old 1 GiB linux/amd64 -
sha256:2 application/x sha256:new 1 GiB linux/amd64 -
sha256:3 application/x sha256:kept 1 GiB linux/amd64 -
"""
    assert images.replaced(listed) == ["import-2026-11-24@sha256:old", "sha256:1"]
    assert images.replaced("") == []

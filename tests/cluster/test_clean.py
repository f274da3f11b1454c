"""`make demo-clean` with namespaces that go while it works."""

from cluster import spaces
from tools import clean
from tools.offline_cluster import clients


def test_a_namespace_that_went_by_itself_stops_no_cleaning() -> None:
    with spaces.made("test") as gone:
        pass
    with spaces.made("test") as left:
        marked = clean.marked()
        assert f"namespace/{left}" in marked
        clients.kubectl("wait", "--for=delete", f"namespace/{gone}", "--timeout=3m")
        clean.delete([f"namespace/{gone}", f"namespace/{left}"])
        assert f"namespace/{left}" not in clean.marked()

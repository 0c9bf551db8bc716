from pathlib import Path
from zipfile import ZipFile, ZipInfo

from infra.archive import make_reproducible


def zipped(path: Path, *entries: tuple[str, int]) -> Path:
    with ZipFile(path, "w") as archive:
        for name, year in entries:
            archive.writestr(ZipInfo(name, (year, 5, 4, 3, 2, 1)), f"content of {name}")
    return path


def test_order_and_dates_do_not_change_the_archive(tmp_path: Path) -> None:
    first = zipped(tmp_path / "first.zip", ("a.py", 2001), ("b.py", 2002))
    second = zipped(tmp_path / "second.zip", ("b.py", 2003), ("a.py", 2004))
    make_reproducible(first)
    make_reproducible(second)
    assert first.read_bytes() == second.read_bytes()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["first.zip", "second.zip"]


def test_lambda_may_read_every_file(tmp_path: Path) -> None:
    path = zipped(tmp_path / "made.zip", ("a.py", 2001))
    make_reproducible(path)
    with ZipFile(path) as archive:
        assert archive.read("a.py") == b"content of a.py"
        assert [entry.external_attr >> 16 for entry in archive.infolist()] == [0o100644]

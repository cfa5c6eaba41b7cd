"""Output files: whole or not at all, and never over one that exists unless forced."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from whygrad import outputs
from whygrad.errors import BadInput


def test_a_saved_file_has_the_text_and_the_usual_permissions(tmp_path: Path) -> None:
    outputs.save(tmp_path / "page.html", "größer →\n")
    assert (tmp_path / "page.html").read_bytes() == "größer →\n".encode()
    (tmp_path / "plain").touch()
    modes = {stat.S_IMODE(path.stat().st_mode) for path in tmp_path.iterdir()}
    assert len(modes) == 1


def test_an_existing_file_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    path.write_text("mine")
    for write in (lambda: outputs.save(path, "yours"), lambda: outputs.create(path), lambda: outputs.check(path)):
        with pytest.raises(BadInput, match="exists already; use --force"):
            write()
    assert path.read_text() == "mine"


def test_a_dangling_link_counts_as_existing(tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    path.symlink_to(tmp_path / "nowhere")
    with pytest.raises(BadInput, match="exists already"):
        outputs.save(path, "text")


def test_forcing_writes_through_a_link(tmp_path: Path) -> None:
    target, link = tmp_path / "target", tmp_path / "link"
    target.write_text("old")
    link.symlink_to(target)
    outputs.save(link, "new", force=True)
    assert link.is_symlink()
    assert target.read_text() == "new"


def test_a_file_that_fails_halfway_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "page.html"
    path.write_text("old")

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(BadInput, match=r"page\.html: cannot be written: No space left on device\."):
        outputs.save(path, "new", force=True)
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="Linux")
@pytest.mark.parametrize("force", [False, True])
def test_a_device_is_written_to_and_not_replaced(force: bool) -> None:
    outputs.save("/dev/null", "text", force=force)
    with pytest.raises(BadInput, match="a ledger needs a file"):
        outputs.create("/dev/null", force=force)
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)
    with pytest.raises(BadInput, match="No space left"):
        outputs.save("/dev/full", "text", force=force)


def test_a_missing_folder_and_a_directory_are_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="there is no directory"):
        outputs.check(tmp_path / "no" / "page.html")
    with pytest.raises(BadInput, match="is a directory; name a file in it"):
        outputs.check(tmp_path, force=True)

"""Pages in a browser, where the machine has one."""

import shutil
import subprocess

import pytest


def drawn_page(path, profile, *, width=1280):
    """Return the document of a page after its scripts ran, in a window of ``width`` pixels.

    Nothing that a page says is checked here alone: its data is compared without a browser. A machine without
    one (the project asks for none) skips whether the scripts run.
    """
    if shutil.which("chromium") is None:
        pytest.skip("no browser on this machine")
    options = (
        "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
        "--disable-component-update --disable-sync --virtual-time-budget=4000 --dump-dom"
    )
    command = [
        "chromium",
        *options.split(),
        f"--window-size={width},900",
        f"--user-data-dir={profile}",
        f"file://{path}",
    ]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=True).stdout

"""A headless Chromium for the tests of pages."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest


def open_browser(folder: Path) -> Any:
    """The driver of a new browser, whose data lie in `folder`. The test skips where there is no browser."""
    pytest.importorskip("selenium", reason="selenium is not installed")
    from selenium import webdriver
    from selenium.common.exceptions import WebDriverException

    program = shutil.which("chromium") or shutil.which("google-chrome") or shutil.which("chrome")
    driver_path = shutil.which("chromedriver")
    if program is None or driver_path is None:
        pytest.skip("no browser: install chromium and chromium-driver")
    options = webdriver.ChromeOptions()
    options.binary_location = program
    for flag in (
        "--headless=new",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-dev-shm-usage",
        "--no-first-run",
        "--disable-background-networking",
        "--disable-component-update",
        "--disable-sync",
        f"--user-data-dir={folder}",
        "--window-size=1280,1000",
    ):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    try:
        return webdriver.Chrome(options=options, service=webdriver.ChromeService(driver_path))
    except WebDriverException as error:
        pytest.skip(f"the browser does not start: {error.msg}")


def settle(browser: Any) -> None:
    """Until two frames have been drawn, and with them what the last event caused."""
    browser.execute_async_script(
        "const done = arguments[0], frame = requestAnimationFrame;"
        "setTimeout(() => frame(() => frame(done)), 200)"
    )

"""One headless browser for each module of tests that looks at pages."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from typing import Any

import pytest


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
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
        f"--user-data-dir={tmp_path_factory.mktemp('browser')}",
        "--window-size=1280,1000",
    ):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    try:
        driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(driver_path))
    except WebDriverException as error:
        pytest.skip(f"the browser does not start: {error.msg}")
    yield driver
    driver.quit()

"""A real page in a real browser, as a user's hand moves it."""

from __future__ import annotations

from typing import Any


def show_gallery(browser: Any) -> None:
    """Scroll to it: only the cards near the window are filled."""
    browser.execute_script("document.getElementById('bar').scrollIntoView({behavior: 'instant'})")
    settle(browser)


def settle(browser: Any) -> None:
    """Until two frames have been drawn, and with them what the last event caused."""
    browser.execute_async_script(
        "const done = arguments[0], frame = requestAnimationFrame;"
        "setTimeout(() => frame(() => frame(done)), 200)"
    )


def set_value(browser: Any, name: str, value: object) -> None:
    """What a user's hand does: the control changes and says so."""
    browser.execute_script(
        "const e = document.getElementById(arguments[0]); e.value = arguments[1];"
        "for (const kind of ['input', 'change']) e.dispatchEvent(new Event(kind, {bubbles: true}))",
        name,
        str(value),
    )
    settle(browser)


def click(browser: Any, name: str) -> None:
    browser.execute_script("document.getElementById(arguments[0]).click()", name)
    settle(browser)


def errors(browser: Any) -> list[Any]:
    """What the page wrote to the console since the last call, if it is a fault."""
    return [entry for entry in browser.get_log("browser") if entry["level"] in ("SEVERE", "WARNING")]

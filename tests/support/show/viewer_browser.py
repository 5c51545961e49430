"""A page in a real browser that is watched: what it complains of, what it asks for, what it tries to open."""

from __future__ import annotations

import time

from playwright.sync_api import Browser, Dialog, Page

PATIENCE = 120_000
"""Milliseconds: how long a page takes says something of the machine's other work, not of the page."""
SIZES = {1280: 900, 400: 860}
"""Widths that the page is made for, each with a height."""


class Watched:
    """An opened page, and all that went wrong with it so far."""

    def __init__(self, browser: Browser, address: str, width: int = 1280, scheme: str = "light") -> None:
        """
        Args:
            address: of the document, without the part after ``#``.
        """
        self.address = address
        self.wrong: list[str] = []
        self.page: Page = browser.new_page(
            viewport={"width": width, "height": SIZES[width]},
            color_scheme="dark" if scheme == "dark" else "light",
        )
        self.page.set_default_timeout(PATIENCE)
        self.page.on("console", lambda m: m.type in ("error", "warning") and self.wrong.append(m.text))
        self.page.on("pageerror", lambda error: self.wrong.append(str(error)))
        self.page.on("dialog", self._dialog)
        self.page.on("popup", lambda opened: self.wrong.append(f"opened {opened.url}"))
        self.page.on("request", lambda request: self._asked(request.url))
        self.page.on("framenavigated", lambda frame: self._asked(frame.url))

    def go(self, place: str) -> Page:
        """Show what stands at ``#/place``, and wait until it does."""
        self.page.goto(f"{self.address}#/{place}")
        self.settled()
        return self.page

    def settled(self) -> None:
        """Wait until nothing is being loaded."""
        self.until("document.querySelector('main h1') && !document.querySelector('.waiting, .stale')")

    def until(self, condition: str) -> None:
        """Wait until an expression is true; Playwright's own way needs ``eval``, which the page forbids."""
        deadline = time.monotonic() + PATIENCE / 1000
        once_events_are_heard = f"() => new Promise(done => setTimeout(() => done({condition})))"
        while not self.page.evaluate(once_events_are_heard):
            assert time.monotonic() < deadline, f"never came true: {condition}; wrong so far: {self.wrong}"
            self.page.wait_for_timeout(20)

    def press(self, *keys: str, to: str | None = None) -> None:
        """One after the other, each with what it sets going.

        Args:
            to: the place where the last one leads, which may first have to be asked for.
        """
        for key in keys:
            self.page.keyboard.press(key)
            self.settled()
        if to is not None:
            self.until(f"location.hash === '#/{to}'")
            self.settled()

    @property
    def place(self) -> str:
        """The address after ``#/``."""
        return self.page.evaluate("location.hash").removeprefix("#/")

    @property
    def width(self) -> int:
        """Of all that the page draws, also beside the screen."""
        return self.page.evaluate("document.documentElement.scrollWidth")

    def texts(self, selector: str) -> list[str]:
        """What stands in the elements that are seen."""
        return self.page.locator(selector).locator("visible=true").all_inner_texts()

    def _dialog(self, dialog: Dialog) -> None:
        self.wrong.append(f"a dialog: {dialog.message}")
        dialog.dismiss()

    def _asked(self, url: str) -> None:
        if not url.startswith((self.address, "data:", "about:blank")):
            self.wrong.append(f"asked for {url[:200]}")

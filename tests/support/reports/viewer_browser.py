"""A watched page in a real browser: its errors, its requests, and the pages it tries to open."""

from __future__ import annotations

import time

from playwright.sync_api import Browser, ConsoleMessage, Dialog, Page

PATIENCE = 120_000
"""Milliseconds to wait for a page. It is long, because a page's time depends on the machine's other work."""
SIZES = {1280: 900, 400: 860}
"""Widths that the page supports, each with a height."""


class Watched:
    """An open page, and its errors so far."""

    def __init__(self, browser: Browser, address: str, width: int = 1280, scheme: str = "light") -> None:
        """
        Args:
            address: address of the document, without the part after ``#``.
        """
        self.address = address
        self.wrong: list[str] = []
        self.page: Page = browser.new_page(
            viewport={"width": width, "height": SIZES[width]},
            color_scheme="dark" if scheme == "dark" else "light",
        )
        self.page.set_default_timeout(PATIENCE)
        self.page.on("console", self._said)
        self.page.on("pageerror", lambda error: self.wrong.append(str(error)))
        self.page.on("dialog", self._dialog)
        self.page.on("popup", lambda opened: self.wrong.append(f"opened {opened.url}"))
        self.page.on("request", lambda request: self._asked(request.url))
        self.page.on("framenavigated", lambda frame: self._asked(frame.url))

    def go(self, place: str) -> Page:
        """Go to ``#/place``, and wait until it is shown."""
        self.page.goto(f"{self.address}#/{place}")
        self.settled()
        return self.page

    def settled(self) -> None:
        """Wait until the view of the address is drawn and nothing is being loaded."""
        self.until(
            "document.querySelector('main h1') && !document.querySelector('.waiting, .stale')"
            " && document.querySelector('main').dataset.place === location.hash"
        )

    def until(self, condition: str) -> None:
        """Wait until an expression is true; Playwright's own way needs ``eval``, which the page forbids."""
        deadline = time.monotonic() + PATIENCE / 1000
        once_events_are_heard = f"() => new Promise(done => setTimeout(() => done({condition})))"
        while not self.page.evaluate(once_events_are_heard):
            assert time.monotonic() < deadline, f"never came true: {condition}; wrong so far: {self.wrong}"
            self.page.wait_for_timeout(20)

    def press(self, *keys: str, to: str | None = None) -> None:
        """Press keys one after another, and wait for the effect of each.

        Args:
            to: the place to which the last key leads, which may have to be loaded first.
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
        return str(self.page.evaluate("location.hash")).removeprefix("#/")

    @property
    def width(self) -> int:
        """Width of everything that the page draws, including parts outside the screen."""
        return int(self.page.evaluate("document.documentElement.scrollWidth"))

    def texts(self, selector: str) -> list[str]:
        """The texts of the visible elements."""
        return self.page.locator(selector).locator("visible=true").all_inner_texts()

    def _said(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            self.wrong.append(message.text)

    def _dialog(self, dialog: Dialog) -> None:
        self.wrong.append(f"a dialog: {dialog.message}")
        dialog.dismiss()

    def _asked(self, url: str) -> None:
        if not url.startswith((self.address, "data:", "about:blank")):
            self.wrong.append(f"asked for {url[:200]}")

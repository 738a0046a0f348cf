"""Headless Chromium for the tests, the benchmark and the screenshots of the viewer, driven by selenium."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
DRIVER = shutil.which("chromedriver") or shutil.which("/usr/lib/chromium-browser/chromedriver")


def missing() -> str:
    """Why the browser cannot be started; empty if it can."""
    try:
        import selenium  # noqa: F401
    except ImportError:
        return "selenium is not installed; `make test-viewer` installs it"
    return "" if CHROMIUM and DRIVER else "Chromium is missing; on Debian: apt-get install chromium chromium-driver"


class Browser:
    """A browser window with helpers for the viewer.

    Args:
        width, height: of the window in pixels.
        phone: emulate a phone, whose page is as wide as the window.
        dark: prefer dark colors.
    """

    def __init__(self, width: int = 1280, height: int = 800, *, phone: bool = False, dark: bool = False) -> None:
        from selenium import webdriver

        options = webdriver.ChromeOptions()
        options.binary_location = str(CHROMIUM)
        for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"):
            options.add_argument(argument)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
        options.set_capability("unhandledPromptBehavior", "dismiss")
        self.driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(DRIVER))
        screen = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": phone}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", screen)
        self.prefer("dark" if dark else "light")

    def prefer(self, scheme: str) -> None:
        preference = {"name": "prefers-color-scheme", "value": scheme}
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [preference]})

    def open(self, page: Path | str, address: str = "") -> None:
        """Load a page and wait until it is ready."""
        self.events()
        self.driver.get("about:blank")
        self.driver.get((page.as_uri() if isinstance(page, Path) else page) + address)
        self.wait("performance.getEntriesByName('ready').length")

    def go(self, address: str) -> None:
        """Follow a link inside the page and wait until its episode is shown."""
        self.run("location.hash = arguments[0]", address)
        self.run_async("setTimeout(arguments[0], 50)")

    def run(self, script: str, *values: Any) -> Any:
        return self.driver.execute_script(script, *values)

    def run_async(self, script: str, *values: Any) -> Any:
        self.driver.set_script_timeout(120)
        return self.driver.execute_async_script(script, *values)

    def wait(self, condition: str) -> None:
        from selenium.webdriver.support.ui import WebDriverWait

        WebDriverWait(self.driver, 60, poll_frequency=0.02).until(lambda _: self.run(f"return {condition}"), condition)

    def text(self, selector: str) -> str:
        return str(self.run("return document.querySelector(arguments[0])?.innerText ?? ''", selector))

    def press(self, *keys: str) -> None:
        """Press keys in the focused element. The names of keys are those of selenium, such as ENTER."""
        from selenium.webdriver import ActionChains, Keys

        for key in keys:
            ActionChains(self.driver).send_keys(getattr(Keys, key, key)).perform()
            self.run_async("setTimeout(arguments[0], 60)")

    def events(self) -> list[dict[str, Any]]:
        """The events of the browser's debugging protocol since the last call."""
        return [json.loads(entry["message"])["message"] for entry in self.driver.get_log("performance")]

    def problems(self, page: Path | str) -> list[str]:
        """Console messages, dialogs and requests other than for the page itself, since the page was opened."""
        found = [entry["message"] for entry in self.driver.get_log("browser")]
        for event in self.events():
            if event["method"] == "Page.javascriptDialogOpening":
                found.append(f"dialog: {event['params']['message']}")
            if event["method"] == "Network.requestWillBeSent":
                url = event["params"]["request"]["url"]
                if not url.startswith(("data:", "about:", page.as_uri() if isinstance(page, Path) else page)):
                    found.append(f"request: {url}")
        return found

    def close(self) -> None:
        self.driver.quit()

    def __enter__(self) -> Browser:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

"""Drive the system's Firefox by Marionette, the protocol that it speaks on a local port: without a driver of its own."""

import contextlib
import json
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

KEYS = {
    "ArrowRight": "\ue014",
    "Backspace": "\ue003",
    "Control+a": "\ue009a\ue000",
    "Control+Enter": "\ue009\ue007\ue000",
    "Enter": "\ue007",
    "PageDown": "\ue00f",
    "Tab": "\ue004",
}
ALONE = {  # every other host stands behind a proxy that is not there
    "network.proxy.type": 1,
    "network.proxy.http": "127.0.0.1",
    "network.proxy.http_port": 9,
    "network.proxy.ssl": "127.0.0.1",
    "network.proxy.ssl_port": 9,
    "network.proxy.no_proxies_on": "127.0.0.1",
}
ELEMENT = "element-6066-11e4-a52e-4f735466cecf"  # the key under which WebDriver names an element


def find() -> str | None:
    return shutil.which("firefox-esr") or shutil.which("firefox")


class Window:
    """One window of Firefox. A message is `length:[0, id, command, parameters]`, its answer `length:[1, id, error, result]`."""

    def __init__(self, port: int, wait: float = 60):
        end = time.monotonic() + wait
        while True:
            try:
                self.line = socket.create_connection(("127.0.0.1", port), timeout=wait)
                break
            except OSError:
                if time.monotonic() > end:
                    raise
                time.sleep(0.2)
        self.count = 0
        self.read()  # what it says of itself
        self.send("WebDriver:NewSession")

    def read(self) -> object:
        length = b""
        while not length.endswith(b":"):
            length += self.line.recv(1)
        text = b""
        while len(text) < int(length[:-1]):
            text += self.line.recv(int(length[:-1]) - len(text))
        return json.loads(text)

    def send(self, command: str, **parameters: object) -> object:
        self.count += 1
        text = json.dumps([0, self.count, command, parameters]).encode()
        self.line.sendall(b"%d:%b" % (len(text), text))
        _, _, error, result = self.read()
        if error:
            raise RuntimeError(f"{command}: {error['message']}")
        return result

    def size(self, width: int, height: int) -> None:
        """Of the page, not of the window around it."""
        self.send("WebDriver:SetWindowRect", width=width, height=height)
        inner = self.run("return [innerWidth, innerHeight]")
        self.send(
            "WebDriver:SetWindowRect", width=2 * width - inner[0], height=2 * height - inner[1]
        )

    def go(self, address: str) -> None:
        self.send("WebDriver:Navigate", url=address)

    def run(self, script: str) -> object:
        return self.send("WebDriver:ExecuteScript", script=script, args=[])["value"]

    def wait(self, script: str, seconds: float = 20) -> bool:
        end = time.monotonic() + seconds
        while not self.run(script):
            if time.monotonic() > end:
                return False
            time.sleep(0.1)
        return True

    def find(self, selector: str) -> str:
        found = self.send("WebDriver:FindElement", using="css selector", value=selector)
        return found["value"][ELEMENT]

    def click(self, selector: str) -> None:
        self.send("WebDriver:ElementClick", id=self.find(selector))

    def type(self, selector: str, strokes: list[str]) -> None:
        """Type texts and keys, one after the other, into an element."""
        for each in strokes:
            text = KEYS.get(each, each)
            self.send("WebDriver:ElementSendKeys", id=self.find(selector), text=text)

    def key(self, name: str) -> None:
        pressed = [{"type": kind, "value": KEYS[name]} for kind in ("keyDown", "keyUp")]
        self.send(
            "WebDriver:PerformActions", actions=[{"type": "key", "id": "keys", "actions": pressed}]
        )


@contextlib.contextmanager
def started() -> Iterator[Window]:
    """A Firefox without windows on the screen, with a profile that is gone at the end."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with tempfile.TemporaryDirectory() as profile:
        settings = {
            "marionette.port": port,
            "datareporting.policy.dataSubmissionEnabled": False,
            **ALONE,
        }
        lines = [
            f"user_pref({json.dumps(name)}, {json.dumps(value)});"
            for name, value in settings.items()
        ]
        Path(profile, "user.js").write_text("\n".join(lines))
        command = [find(), "--headless", "--marionette", "--no-remote", "--profile", profile]
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            yield Window(port)
        finally:
            process.terminate()
            process.wait(timeout=30)

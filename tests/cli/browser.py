"""A headless Chromium, spoken to through the DevTools protocol: opens a page from a file, asks it things, presses keys
and clicks, takes pictures of it. Standard library only."""
import base64
import json
import os
import pathlib
import re
import shutil
import socket
import struct
import subprocess
import tempfile
import time

NAMES = ("chromium", "chromium-browser", "google-chrome")


def missing():
    """What of all it takes is not there; None."""
    return None if any(shutil.which(name) for name in NAMES) else "chromium"


class Socket:
    """A WebSocket (RFC 6455) to this machine, as client: text messages whole."""

    def __init__(self, port, path):
        self.stream = socket.create_connection(("127.0.0.1", port), timeout=60)
        key = base64.b64encode(os.urandom(16)).decode()
        self.stream.sendall((f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nUpgrade: websocket\r\n"
                             f"Connection: Upgrade\r\nSec-WebSocket-Key: {key}\r\nSec-WebSocket-Version: 13\r\n\r\n").encode())
        answer = b""
        while not answer.endswith(b"\r\n\r\n"):
            answer += self._read(1)
        if b" 101 " not in answer.split(b"\r\n")[0]:
            raise RuntimeError(answer.decode(errors="replace"))

    def _read(self, size):
        parts = []
        while size > 0:
            part = self.stream.recv(min(size, 1 << 20))
            if not part:
                raise RuntimeError("the browser has hung up")
            parts.append(part)
            size -= len(part)
        return b"".join(parts)

    def _send(self, opcode, data):
        size = len(data)
        length = (struct.pack(">B", 0x80 | size) if size < 126 else
                  struct.pack(">BH", 0x80 | 126, size) if size < 1 << 16 else struct.pack(">BQ", 0x80 | 127, size))
        self.stream.sendall(bytes([0x80 | opcode]) + length + bytes(4) + data)  # a mask of zeros leaves data as they are

    def send(self, text):
        self._send(1, text.encode())

    def recv(self):
        message = b""
        while True:
            head, size = self._read(2)
            size &= 0x7f
            if size == 126:
                size, = struct.unpack(">H", self._read(2))
            elif size == 127:
                size, = struct.unpack(">Q", self._read(8))
            data = self._read(size)
            if head & 0x0f == 9:
                self._send(10, data)  # a ping
                continue
            message += data
            if head & 0x80:
                return message.decode()

    def close(self):
        self.stream.close()


class Browser:
    """One tab. Everything that the console says, errors of scripts, and what is asked of a network are kept."""

    def __init__(self, width=1280, height=900):
        self.folder = tempfile.mkdtemp(prefix="convsched-browser-")
        program = next(shutil.which(name) for name in NAMES if shutil.which(name))
        options = ["--headless=new", "--disable-gpu", "--no-first-run", "--remote-debugging-port=0",
                   "--remote-allow-origins=*", "--hide-scrollbars", "--disable-dev-shm-usage", "--force-device-scale-factor=1",
                   "--disable-background-networking", "--disable-component-update", "--disable-sync",
                   f"--user-data-dir={self.folder}", f"--window-size={width},{height}", "about:blank"]
        if os.geteuid() == 0:
            options.insert(0, "--no-sandbox")  # which root has none of, as in a container
        self.log = open(os.path.join(self.folder, "log"), "wb")
        self.process = subprocess.Popen([program, *options], stdout=self.log, stderr=self.log, stdin=subprocess.DEVNULL)
        self.problems, self.requests, self.events, self.number = [], [], [], 0
        self.socket = Socket(*self._address())
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = None
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.call(domain + ".enable")
        self.resize(width, height)

    def _address(self):
        port = pathlib.Path(self.folder, "DevToolsActivePort")
        for _ in range(600):
            if port.exists() and port.read_text().count("\n") >= 1:
                lines = port.read_text().splitlines()
                return int(lines[0]), lines[1]
            if self.process.poll() is not None:
                break
            time.sleep(0.1)
        raise RuntimeError("chromium does not start: " + pathlib.Path(self.folder, "log").read_text(errors="replace")[-2000:])

    def close(self):
        self.socket.close()
        self.process.terminate()
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.log.close()
        shutil.rmtree(self.folder, ignore_errors=True)

    def call(self, method, **parameters):
        self.number += 1
        message = {"id": self.number, "method": method, "params": parameters}
        if getattr(self, "session", None):
            message["sessionId"] = self.session
        self.socket.send(json.dumps(message))
        while True:
            answer = json.loads(self.socket.recv())
            if answer.get("id") == self.number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                return answer["result"]
            self._note(answer)

    def _note(self, event):
        method, told = event.get("method"), event.get("params", {})
        self.events.append(method)
        if method == "Runtime.exceptionThrown":
            self.problems.append(told["exceptionDetails"].get("exception", {}).get("description", "exception"))
        elif method == "Runtime.consoleAPICalled" and told["type"] in ("error", "warning", "assert"):
            self.problems.append(str(told["args"]))
        elif method == "Log.entryAdded" and told["entry"]["level"] in ("error", "warning"):
            self.problems.append(told["entry"]["text"])
        elif method == "Network.requestWillBeSent":
            self.requests.append(told["request"]["url"])

    # ---- What a test does ----

    def open(self, path):
        self.events.clear()
        self.call("Page.navigate", url=pathlib.Path(path).resolve().as_uri())
        while "Page.loadEventFired" not in self.events:
            self._note(json.loads(self.socket.recv()))

    def ask(self, expression):
        """The value of a JavaScript expression."""
        result = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in result:
            raise RuntimeError(f"{expression}: {result['exceptionDetails']}")
        return result["result"].get("value")

    def resize(self, width, height):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)

    def scheme(self, name):
        """"light" or "dark"."""
        self.call("Emulation.setEmulatedMedia", media="", features=[{"name": "prefers-color-scheme", "value": name}])

    def click(self, x, y):
        for kind in ("mouseMoved", "mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="none" if kind == "mouseMoved" else "left",
                      clickCount=0 if kind == "mouseMoved" else 1)

    def move(self, x, y):
        self.call("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)

    def press(self, key, text=None):
        codes = {"ArrowLeft": 37, "ArrowUp": 38, "ArrowRight": 39, "ArrowDown": 40, "Escape": 27, "Enter": 13, "Tab": 9,
                 "Home": 36, "End": 35}
        told = {"key": key, "code": key, "windowsVirtualKeyCode": codes.get(key, ord(key[0]))}
        if text:
            told["text"] = text
        self.call("Input.dispatchKeyEvent", type="keyDown", **told)
        self.call("Input.dispatchKeyEvent", type="keyUp", **told)

    def picture(self, path, whole=False):
        clip = {}
        if whole:
            size = self.call("Page.getLayoutMetrics")["cssContentSize"]
            clip = {"clip": {"x": 0, "y": 0, "width": size["width"], "height": size["height"], "scale": 1}}
        data = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=whole, **clip)["data"]
        pathlib.Path(path).write_bytes(base64.b64decode(data))

    def printed(self):
        """The page as PDF."""
        return base64.b64decode(self.call("Page.printToPDF", printBackground=True)["data"])


def contrast(first, second):
    """WCAG's ratio of two colours, "rgb(…)"."""
    def luminance(colour):
        parts = [float(part) / 255 for part in re.findall(r"[\d.]+", colour)[:3]]
        linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
    a, b = sorted((luminance(first), luminance(second)))
    return (b + 0.05) / (a + 0.05)

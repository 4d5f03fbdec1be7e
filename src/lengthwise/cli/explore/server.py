"""The explorer over HTTP: its page, and one JSON answer a panel. Reached from this computer only.

Every request gets one answer, after which the connection is closed. What could hold the server up is limited:
the bytes of a request, the seconds that it may take to arrive and that its answer may take to leave, how many
are served at once. What is computed is limited by the ranges of the parameters and the length of the input.
"""

import contextlib
import io
import json
import math
import os
import socket
import socketserver
import sys
import threading
import time
from collections.abc import Callable, Mapping
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.resources import files
from typing import Any
from urllib.parse import urlsplit

from lengthwise._messages import one_line
from lengthwise._version import __version__
from lengthwise.reporting.explorer import (
    InputMistake,
    attention_answer,
    bound_answer,
    controls,
    simulation_answer,
)

ADDRESS = "127.0.0.1"

MOST_BYTES = 16_384
"""The body of a request has at most so many bytes."""

MOST_READ = 1_048_576
"""So much of what a client still sends is read and thrown away, so that it hears its answer."""

MOST_CLIENTS = 32
"""So many are served at once; others are told to come back."""

SECONDS = 10
"""A request must have arrived after so long, and its answer must have left after as long again."""

WAIT = 20
"""A request waits at most so many seconds for those before it to be computed."""

LINGER = 1
"""What a client still sends is read for so many seconds."""

PAGE = {
    "/": ("index.html", "text/html; charset=utf-8"),
    "/style.css": ("style.css", "text/css; charset=utf-8"),
    "/main.js": ("main.js", "text/javascript; charset=utf-8"),
    "/address.js": ("address.js", "text/javascript; charset=utf-8"),
    "/charts.js": ("charts.js", "text/javascript; charset=utf-8"),
    "/panels.js": ("panels.js", "text/javascript; charset=utf-8"),
    "/tables.js": ("tables.js", "text/javascript; charset=utf-8"),
    "/icon.svg": ("icon.svg", "image/svg+xml"),
}
"""The files of the page by their paths; nothing else is ever read."""

CONTROLS = "/api/controls"

ANSWERS: dict[str, Callable[[Mapping[str, Any]], dict[str, Any]]] = {
    "/api/bound": bound_answer,
    "/api/simulation": simulation_answer,
    "/api/attention": attention_answer,
}
"""Who answers what is posted where."""

HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "clipboard-write=(self), clipboard-read=(), camera=(), geolocation=()",
    "Cache-Control": "no-store",
}

JSON = "application/json"

LATE = "the request took too long to arrive"

BUSY = "too much is asked at once: ask again"

FULL = (
    f"HTTP/1.0 503 Service Unavailable\r\nContent-Type: {JSON}\r\nConnection: close\r\n\r\n"
    f"{json.dumps({'error': BUSY})}"
).encode()
"""What is said when no place is free."""


class Server(ThreadingHTTPServer):
    """One thread a request, one computation at a time."""

    daemon_threads = True
    allow_reuse_address = os.name != "nt"  # on Windows it would let two servers share a port
    allow_reuse_port = False
    request_queue_size = 64

    def __init__(self, port: int) -> None:
        self.computing = threading.Lock()
        self.places = threading.BoundedSemaphore(MOST_CLIENTS)
        self._placed: set[Any] = set()
        super().__init__((ADDRESS, port), Handler)

    def server_bind(self) -> None:
        """Bind without asking the network for this computer's name."""
        socketserver.TCPServer.server_bind(self)
        self.server_name, self.server_port = ADDRESS, self.server_address[1]

    def process_request(self, request: Any, client_address: Any) -> None:
        """Serve in a thread of its own, if a place is free."""
        if self.places.acquire(blocking=False):
            self._placed.add(request)
            try:
                super().process_request(request, client_address)
            except BaseException:  # no thread could be started, or an interrupt came after it was
                self._free(request)
                raise
            return
        with contextlib.suppress(OSError):
            request.settimeout(0)
            request.send(FULL)
        self.close_request(request)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Serve, and free the place."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._free(request)

    def _free(self, request: Any) -> None:
        """Free the place of a request, once: whoever comes second finds that it has none."""
        with contextlib.suppress(KeyError):
            self._placed.remove(request)
            self.places.release()

    def shutdown_request(self, request: Any) -> None:
        """Say that this was all, and read on for a moment: closing on a client that still sends would take
        its answer away.
        """
        with contextlib.suppress(OSError):
            request.shutdown(socket.SHUT_WR)
            left, end = MOST_READ, time.monotonic() + LINGER
            while left > 0 and (seconds := end - time.monotonic()) > 0:
                request.settimeout(seconds)
                if not (read := len(request.recv(65536))):
                    break
                left -= read
        self.close_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that went away is no news."""
        if not isinstance(sys.exception(), ConnectionError | TimeoutError):
            super().handle_error(request, client_address)

    def origins(self) -> set[str]:
        """The origins of this server's own page."""
        return {f"http://{host}" for host in self.hosts()}

    def hosts(self) -> set[str]:
        """What a browser on this computer calls this server: other names may be another site's."""
        names = ("localhost", ADDRESS)
        plain = set(names) if self.server_port == 80 else set()
        return plain | {f"{name}:{self.server_port}" for name in names}


def serving(port: int) -> Server:
    """A server that listens, or a ``ValueError`` that says why there is none."""
    if not 0 <= port <= 65535:
        raise ValueError(f"port must be between 0 and 65535, got {port}")
    try:
        return Server(port)
    except OSError as error:
        reason = one_line(error.strerror or error).lower()
        raise ValueError(f"cannot serve on port {port}: {reason}; give another by --port") from error


class Refusal(Exception):
    """A request that gets no answer: the status, and one sentence."""

    def __init__(self, status: HTTPStatus, sentence: str, **headers: str) -> None:
        self.status, self.sentence, self.headers = status, sentence, headers


class Arriving(io.RawIOBase):
    """What a client sends until a moment from which on it counts as having said all."""

    def __init__(self, connection: socket.socket, seconds: float) -> None:
        self.connection, self.end, self.late = connection, time.monotonic() + seconds, False

    def readable(self) -> bool:
        """As every reader says of itself."""
        return True

    def readinto(self, buffer: Any) -> int:
        """The next bytes; none at the end, and none after the last moment."""
        left = self.end - time.monotonic()
        if left > 0:
            self.connection.settimeout(left)
            with contextlib.suppress(TimeoutError):
                return self.connection.recv_into(buffer)
        self.late = True
        return 0


class Handler(BaseHTTPRequestHandler):
    """One request."""

    server_version, sys_version = f"lengthwise/{__version__}", ""
    default_request_version = "HTTP/1.0"
    raw_requestline: bytes
    timeout = SECONDS

    def setup(self) -> None:
        """Read with a last moment for the whole request, however slowly it drips."""
        super().setup()
        self.rfile.close()
        self.arriving = Arriving(self.connection, SECONDS)
        self.rfile = io.BufferedReader(self.arriving)

    def parse_request(self) -> bool:
        """As ``http.server`` does, but a line without words is answered too."""
        if not str(self.raw_requestline, "iso-8859-1").split():
            self.requestline, self.command, self.request_version = "", "", self.default_request_version
            self.send_error(HTTPStatus.BAD_REQUEST)
            return False
        return super().parse_request()

    @property
    def _server(self) -> Server:
        assert isinstance(self.server, Server)
        return self.server

    def do_GET(self) -> None:
        """A file of the page, or the controls."""
        self._answer(self._page)

    do_HEAD = do_GET

    def do_POST(self) -> None:
        """What one panel shows."""
        self._answer(self._panel)

    def _answer(self, find: Callable[[str], tuple[bytes, str]]) -> None:
        try:
            self._check_sender()
            content, kind = find(_path(self.path))
        except Refusal as refusal:
            self._refuse(refusal)
        except (ConnectionError, TimeoutError):
            raise
        except Exception:
            self._server.handle_error(self.request, self.client_address)
            self._refuse(
                Refusal(HTTPStatus.INTERNAL_SERVER_ERROR, "this could not be computed: a bug of ours")
            )
        else:
            self._send(HTTPStatus.OK, content, kind)

    def _check_sender(self) -> None:
        """Refuse what came only in part, and what another site's page could send: by a name of its own for
        this computer, or across.
        """
        if self.arriving.late:
            raise Refusal(HTTPStatus.REQUEST_TIMEOUT, LATE)
        host = self.headers.get_all("Host") or []
        if len(host) != 1 or host[0].strip().lower() not in self._server.hosts():
            raise Refusal(HTTPStatus.FORBIDDEN, "the Host header does not name this server")
        for origin in self.headers.get_all("Origin") or []:
            if origin.strip().lower() not in self._server.origins():
                raise Refusal(HTTPStatus.FORBIDDEN, "only this server's own page may ask")
        site = self.headers.get("Sec-Fetch-Site", "none").strip().lower()
        if self.command == "POST" and site not in ("same-origin", "none"):
            raise Refusal(HTTPStatus.FORBIDDEN, "only this server's own page may ask")

    def _page(self, path: str) -> tuple[bytes, str]:
        if path in ANSWERS:
            raise Refusal(HTTPStatus.METHOD_NOT_ALLOWED, f"{path} takes POST", Allow="POST")
        if path == CONTROLS:
            return _json(controls()), JSON
        if path not in PAGE:
            raise Refusal(HTTPStatus.NOT_FOUND, "there is nothing at this address")
        name, kind = PAGE[path]
        return files("lengthwise.cli.explore").joinpath("page", name).read_bytes(), kind

    def _panel(self, path: str) -> tuple[bytes, str]:
        body = self._body()
        if path == CONTROLS or path in PAGE:
            raise Refusal(HTTPStatus.METHOD_NOT_ALLOWED, f"{path} takes GET", Allow="GET, HEAD")
        if path not in ANSWERS:
            raise Refusal(HTTPStatus.NOT_FOUND, "there is nothing at this address")
        if self.headers.get_content_type() != JSON:
            raise Refusal(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, f"the body must be {JSON}")
        try:
            answer = self._computed(ANSWERS[path], _parsed(body))
        except InputMistake as error:  # an answer, not an error: a browser would log one at every keystroke
            answer = {"mistake": one_line(error)}
        except ValueError as error:
            raise Refusal(HTTPStatus.BAD_REQUEST, one_line(error)) from None
        return _json(answer), JSON

    def _computed(
        self, compute: Callable[[Mapping[str, Any]], dict[str, Any]], given: Mapping[str, Any]
    ) -> dict[str, Any]:
        if not self._server.computing.acquire(timeout=WAIT):
            raise Refusal(HTTPStatus.SERVICE_UNAVAILABLE, BUSY)
        try:
            return compute(given)
        finally:
            self._server.computing.release()

    def _body(self) -> bytes:
        told = self.headers.get_all("Content-Length") or []
        if not told:
            raise Refusal(HTTPStatus.LENGTH_REQUIRED, "a request by POST needs a Content-Length")
        if len(told) > 1 or not (told[0].isascii() and told[0].isdigit() and len(told[0]) <= 18):
            raise Refusal(HTTPStatus.BAD_REQUEST, "Content-Length must be one whole number")
        length = int(told[0])
        if length > MOST_BYTES:
            raise Refusal(
                HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"the body must have at most {MOST_BYTES} bytes"
            )
        body = self.rfile.read(length)
        if len(body) < length:
            raise Refusal(HTTPStatus.BAD_REQUEST, "the body is shorter than its Content-Length")
        return body

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """What ``http.server`` itself refuses: an unknown method, or what is no HTTP."""
        if code == HTTPStatus.NOT_IMPLEMENTED:
            self._refuse(
                Refusal(HTTPStatus.METHOD_NOT_ALLOWED, "use GET, HEAD or POST", Allow="GET, HEAD, POST")
            )
        else:
            status = HTTPStatus(code) if code < 500 else HTTPStatus.BAD_REQUEST
            self._refuse(Refusal(status, "this is no request that HTTP/1.1 allows"))

    def _refuse(self, refusal: Refusal) -> None:
        if self.arriving.late:
            refusal = Refusal(HTTPStatus.REQUEST_TIMEOUT, LATE)
        self._send(refusal.status, _json({"error": refusal.sentence}), JSON, refusal.headers)

    def _send(
        self, status: HTTPStatus, content: bytes, kind: str, headers: Mapping[str, str] | None = None
    ) -> None:
        self.close_connection = True
        self.connection.settimeout(SECONDS)
        self.request_version = self.default_request_version  # 0.9 would get no status and no headers
        self.send_response(status)
        more = {"Content-Type": kind, "Content-Length": str(len(content)), "Connection": "close"}
        for name, value in {**HEADERS, **more, **(headers or {})}.items():
            self.send_header(name, value)
        self.end_headers()
        if getattr(self, "command", None) != "HEAD":
            self.wfile.write(content)

    def log_message(self, format: str, *args: Any) -> None:
        """Requests are not logged."""


def _path(target: str) -> str:
    """The path of a request's target, as it stands: what is escaped or dotted is none of ours."""
    try:
        return urlsplit(target).path if target.startswith("/") and not target.startswith("//") else ""
    except ValueError:
        return ""


def _json(answer: Any) -> bytes:
    return json.dumps(answer, allow_nan=False).encode()


def _parsed(body: bytes) -> dict[str, Any]:
    try:
        given = json.loads(body, parse_float=_float, parse_constant=_float)
    except (ValueError, RecursionError):
        raise ValueError("the body is not JSON with finite numbers") from None
    if not isinstance(given, dict):
        raise ValueError("the body must be a JSON object")
    return given


def _float(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError
    return value

"""The explorer over HTTP: its page, and one JSON answer a panel. Reached from this computer only."""

import json
import math
import os
import socketserver
import sys
import threading
from collections.abc import Callable, Mapping
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.resources import files
from typing import Any
from urllib.parse import urlsplit

from lengthwise._messages import one_line
from lengthwise._version import __version__
from lengthwise.reporting.explorer import attention_answer, bound_answer, controls, simulation_answer

ADDRESS = "127.0.0.1"

MOST_BYTES = 16_384
"""The body of a request has at most so many bytes."""

MOST_READ = 1_048_576
"""So much of a body that is too long is read and thrown away, so that the sender hears the answer."""

SECONDS = 10
"""A client that says nothing for so long is left."""

PAGE = {
    "/": ("index.html", "text/html; charset=utf-8"),
    "/style.css": ("style.css", "text/css; charset=utf-8"),
    "/main.js": ("main.js", "text/javascript; charset=utf-8"),
    "/charts.js": ("charts.js", "text/javascript; charset=utf-8"),
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
    "Cache-Control": "no-store",
}

JSON = "application/json"


class Server(ThreadingHTTPServer):
    """One thread a request, one computation at a time."""

    daemon_threads = True
    allow_reuse_address = os.name != "nt"  # on Windows it would let two servers share a port
    allow_reuse_port = False

    def __init__(self, port: int) -> None:
        self.computing = threading.Lock()
        super().__init__((ADDRESS, port), Handler)

    def server_bind(self) -> None:
        """Bind without asking the network for this computer's name."""
        socketserver.TCPServer.server_bind(self)
        self.server_name, self.server_port = ADDRESS, self.server_address[1]

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that went away is no news."""
        if not isinstance(sys.exception(), ConnectionError | TimeoutError):
            super().handle_error(request, client_address)

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


class Handler(BaseHTTPRequestHandler):
    """One request."""

    server_version, sys_version = f"lengthwise/{__version__}", ""
    timeout = SECONDS

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
            host = self.headers.get_all("Host") or []
            if len(host) != 1 or host[0].strip().lower() not in self._server.hosts():
                raise Refusal(HTTPStatus.FORBIDDEN, "the Host header does not name this server")
            content, kind = find(_path(self.path))
        except Refusal as refusal:
            self._refuse(refusal)
        except ValueError as error:
            self._refuse(Refusal(HTTPStatus.BAD_REQUEST, one_line(error)))
        except (ConnectionError, TimeoutError):
            raise
        except Exception:
            self._server.handle_error(self.request, self.client_address)
            self._refuse(
                Refusal(HTTPStatus.INTERNAL_SERVER_ERROR, "this could not be computed: a bug of ours")
            )
        else:
            self._send(HTTPStatus.OK, content, kind)

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
        given = _parsed(body)
        with self._server.computing:
            return _json(ANSWERS[path](given)), JSON

    def _body(self) -> bytes:
        told = self.headers.get("Content-Length")
        if told is None:
            raise Refusal(HTTPStatus.LENGTH_REQUIRED, "a request by POST needs a Content-Length")
        if not (told.isascii() and told.isdigit() and len(told) <= 18):
            raise ValueError("Content-Length must be a whole number")
        length = int(told)
        if length > MOST_BYTES:
            self.rfile.read(min(length, MOST_READ))
            raise Refusal(
                HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"the body must have at most {MOST_BYTES} bytes"
            )
        body = self.rfile.read(length)
        if len(body) < length:
            raise ValueError("the body is shorter than its Content-Length")
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
        self._send(refusal.status, _json({"error": refusal.sentence}), JSON, refusal.headers)

    def _send(
        self, status: HTTPStatus, content: bytes, kind: str, headers: Mapping[str, str] | None = None
    ) -> None:
        self.close_connection = True
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

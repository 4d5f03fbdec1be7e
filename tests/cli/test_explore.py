"""The explorer over HTTP: who may ask, what they may ask, and what they hear."""

import http.client
import json
import os
import runpy
import socket
import socketserver
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lengthwise.cli import main
from lengthwise.cli.explore import server as door
from lengthwise.cli.explore.server import MOST_BYTES, PAGE, serving
from lengthwise.reporting.explorer import bound_answer, controls

pytestmark = pytest.mark.usefixtures("one_thread")

JSON = {"Content-Type": "application/json"}
PANELS = ["/api/bound", "/api/simulation", "/api/attention"]


@pytest.fixture(scope="module")
def port(one_thread):
    with serving(0) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server.server_port
        server.shutdown()


@pytest.fixture(scope="module")
def live():
    """The command in a process of its own, where shapes are not checked; it must stay silent."""
    command = [sys.executable, "-m", "lengthwise", "explore", "--no-browser", "--port", "0"]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, **pipes) as running:
        assert running.stdout is not None
        yield int(running.stdout.readline().split("127.0.0.1:")[1].split("/")[0])
        running.terminate()
        assert running.communicate(timeout=30)[1] == ""


def ask(port, method, path, body=None, headers=None):
    """Status, headers and body of one request."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=15)
    try:
        connection.request(method, path, body, headers or {})
        reply = connection.getresponse()
        return reply.status, reply.headers, reply.read()
    finally:
        connection.close()


def raw(port, sent):
    """All that the server says to some bytes."""
    with socket.create_connection(("127.0.0.1", port), timeout=15) as talk:
        talk.sendall(sent)
        talk.shutdown(socket.SHUT_WR)
        said = b""
        while part := talk.recv(65536):
            said += part
        return said


def refused(reply, status):
    code, headers, body = reply
    assert code == status
    assert headers.get_content_type() == "application/json"
    told = json.loads(body)
    assert list(told) == ["error"]
    assert told["error"]
    assert "\n" not in told["error"]
    assert "Traceback" not in told["error"]
    return told["error"]


def test_page_and_its_files(port):
    for path, (name, kind) in PAGE.items():
        status, headers, body = ask(port, "GET", path)
        assert (status, headers["Content-Type"]) == (200, kind), name
        assert len(body) == int(headers["Content-Length"]) > 0
        policy = headers["Content-Security-Policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert b"http://" not in body.replace(b"http://www.w3.org/2000/svg", b"")
        assert b"https://" not in body
    status, headers, body = ask(port, "HEAD", "/")
    assert (status, body) == (200, b"")
    assert json.loads(ask(port, "GET", "/api/controls")[2]) == controls()


def test_panels_answer(port):
    asked = {"construction": "modp", "period": 5, "tolerance": 0.2}
    status, _, body = ask(port, "POST", "/api/bound", json.dumps(asked), JSON)
    assert (status, json.loads(body)) == (200, bound_answer(asked))
    for path in PANELS[1:]:
        status, _, body = ask(port, "POST", path, json.dumps({**asked, "input": "(01)^9"}), JSON)
        assert status == 200
        assert json.loads(body)["sentence"]


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1", "127.0.0.1:1", "localhost.evil.example", ""])
def test_other_hosts_are_refused(port, host):
    for method, path in (("GET", "/"), ("GET", "/api/controls"), ("POST", "/api/bound")):
        refused(ask(port, method, path, "{}" if method == "POST" else None, {"Host": host}), 403)
    assert ask(port, "GET", "/", headers={"Host": f"localhost:{port}"})[0] == 200


@pytest.mark.parametrize(
    "origin", ["http://evil.example", "null", "https://127.0.0.1", "http://127.0.0.1:1", ""]
)
def test_other_sites_are_refused(port, origin):
    for method, path in (("GET", "/"), ("GET", "/api/controls"), ("POST", "/api/bound")):
        sent = '{"construction": "simple"}' if method == "POST" else None
        refused(ask(port, method, path, sent, {**JSON, "Origin": origin}), 403)
        own = {**JSON, "Origin": f"http://127.0.0.1:{port}", "Sec-Fetch-Site": "same-origin"}
        assert ask(port, method, path, sent, own)[0] == 200
    for site in ("cross-site", "same-site"):
        refused(ask(port, "POST", "/api/bound", "{}", {**JSON, "Sec-Fetch-Site": site}), 403)
        assert ask(port, "GET", "/", headers={"Sec-Fetch-Site": site})[0] == 200  # a link to the page


def test_a_request_names_one_host(port):
    assert b" 403 " in raw(port, b"GET / HTTP/1.1\r\n\r\n").split(b"\r\n")[0]
    twice = f"GET / HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nHost: evil.example\r\n\r\n".encode()
    assert b" 403 " in raw(port, twice).split(b"\r\n")[0]


@pytest.mark.parametrize(
    "path",
    [
        "/../server.py",
        "/page/../server.py",
        "/%2e%2e/server.py",
        "/..%2fserver.py",
        "/..\\server.py",
        "/index.html",
        "/etc/passwd",
        "//etc/passwd",
        "/style.css/",
        "/style.css%00",
        "/__init__.py",
    ],
)
def test_no_other_file_is_served(port, path):
    refused(ask(port, "GET", path), 404)


def test_statuses(port):
    refused(ask(port, "GET", "/api/bound"), 405)
    refused(ask(port, "POST", "/", "{}", JSON), 405)
    refused(ask(port, "POST", "/api/controls", "{}", JSON), 405)
    assert ask(port, "DELETE", "/")[1]["Allow"] == "GET, HEAD, POST"
    refused(ask(port, "PUT", "/", "x"), 405)
    refused(ask(port, "POST", "/api/nothing", "{}", JSON), 404)
    refused(ask(port, "POST", "/api/bound", "{}", {"Content-Type": "text/plain"}), 415)
    refused(ask(port, "POST", "/api/bound", "x" * (MOST_BYTES + 1), JSON), 413)
    refused(ask(port, "POST", "/api/bound", "x" * 900_000, JSON), 413)
    refused(ask(port, "POST", "/api/bound", iter([b"{}"]), {**JSON, "Transfer-Encoding": "chunked"}), 411)
    refused(ask(port, "POST", "/api/bound", None, {**JSON, "Content-Length": "-1"}), 400)


@pytest.mark.parametrize(
    "body",
    [
        "",
        "{",
        "[]",
        "3",
        "null",
        "\xff",
        '{"construction": "modp", "margin": NaN}',
        '{"construction": "modp", "margin": 1e999}',
        '{"construction": "modp", "margin": ' + "9" * 5000 + "}",
        '{"construction": "modp", "nothing": 1}',
        "[" * 16_000,
    ],
)
def test_malformed_bodies_get_one_sentence(port, body):
    for path in PANELS:
        refused(ask(port, "POST", path, body.encode("latin-1"), JSON), 400)


def test_a_body_that_ends_early(port):
    head = f"POST /api/bound HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nContent-Length: 50\r\n\r\n{{".encode()
    assert b" 400 " in raw(port, head).split(b"\r\n")[0]


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=True) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
names = st.sampled_from(
    ["omega", "knots", "period", "residue", "margin", "bits", "k", "vocabulary", "tolerance", "input"]
)
plausible = st.fixed_dictionaries(
    {"construction": st.sampled_from(["simple", "modp", "kgram"])},
    optional={"input": st.text("01 (),^23", max_size=40)},
)
objects = st.builds(
    lambda base, more: {**base, **more},
    plausible,
    st.dictionaries(names, values | st.integers(0, 30) | st.floats(0, 30), max_size=3),
)
bodies = st.binary(max_size=200) | values.map(json.dumps).map(str.encode)
bodies |= objects.map(json.dumps).map(str.encode)


@given(path=st.sampled_from(PANELS), body=bodies)
@settings(max_examples=150)
def test_no_body_breaks_a_panel(live, path, body):
    before = time.monotonic()
    reply = ask(live, "POST", path, body, JSON)
    assert time.monotonic() - before < 10
    if reply[0] != 200:
        refused(reply, 400)


targets = st.text(st.characters(min_codepoint=33, max_codepoint=126), max_size=60)
targets = st.sampled_from([*PAGE, *PANELS, "/api/controls", "*", "http://127.0.0.1/"]) | targets
targets = st.builds("{}{}".format, targets, st.sampled_from(["", "?a=1", "?..%2f", "#x", "?%ff&&=", "/..;/"]))
lines = st.binary(max_size=60).filter(lambda line: b"\n" not in line)


@given(
    method=st.sampled_from(["GET", "HEAD", "POST", "PUT", "OPTIONS", "TRACE", "CONNECT", "get", "X" * 90]),
    target=targets,
    version=st.sampled_from(["HTTP/1.1", "HTTP/1.0", "HTTP/2.0", "HTTP/9", "", "HTTP/1.1 extra"]),
    headers=st.lists(lines, max_size=4),
    known_host=st.booleans(),
    body=st.binary(max_size=50),
)
@settings(max_examples=200)
def test_no_request_breaks_the_server(port, method, target, version, headers, known_host, body):
    host = [f"Host: 127.0.0.1:{port}".encode()] * known_host
    head = b"\r\n".join([f"{method} {target} {version}".encode(), *host, *headers])
    said = raw(port, head + b"\r\n\r\n" + body)
    assert b"Traceback" not in said
    if said.startswith(b"HTTP/"):
        assert said[9:10] in (b"2", b"4")


@given(sent=st.binary(max_size=300))
@settings(max_examples=60)
def test_noise_does_no_harm(port, sent):
    said = raw(port, sent)
    assert b"Traceback" not in said
    if said.startswith(b"HTTP/"):
        assert said[9:10] in (b"2", b"4")


def drip(port, pieces, pause):
    """All that the server says to pieces that come slowly, and the seconds until then."""
    before = time.monotonic()
    with socket.create_connection(("127.0.0.1", port), timeout=15) as talk:
        try:
            for piece in pieces:
                talk.sendall(piece)
                time.sleep(pause)
        except ConnectionError:
            pass
        said = b""
        while part := talk.recv(65536):
            said += part
    return said, time.monotonic() - before


def test_a_slow_client_is_left(port, monkeypatch):
    monkeypatch.setattr(door, "SECONDS", 0.5)
    host = f"Host: 127.0.0.1:{port}\r\n".encode()
    head = [b"GET / HT", *[b"T"] * 12]
    body = [b"POST /api/bound HTTP/1.1\r\n" + host + b"Content-Length: 90\r\n\r\n", *[b" "] * 12]
    for pieces in (head, body, [b"GET / HTTP/1.1\r\n" + host]):
        said, took = drip(port, pieces, 0.1)
        assert said.startswith(b"HTTP/1.0 408 ")
        assert took < 5
    assert ask(port, "GET", "/")[0] == 200


def test_idle_clients_take_no_place_for_long(monkeypatch):
    monkeypatch.setattr(door, "SECONDS", 1.0)
    with serving(0) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        idle = [socket.create_connection(("127.0.0.1", server.server_port)) for _ in range(door.MOST_CLIENTS)]
        time.sleep(0.2)
        said = drip(server.server_port, [], 0)[0]
        assert said.startswith(b"HTTP/1.0 503 ")
        assert json.loads(said.partition(b"\r\n\r\n")[2])["error"]
        end = time.monotonic() + 15
        status = 503
        while status == 503 and time.monotonic() < end:
            time.sleep(0.2)
            try:
                status = ask(server.server_port, "GET", "/")[0]
            except ConnectionError:  # hung up on before all was sent
                continue
        assert status == 200
        for one in idle:
            one.close()
        server.shutdown()


def test_fuzzed_requests_are_answered(live):
    """The short form of benchmarks/fuzz_http.py."""
    tools = runpy.run_path(str(Path(__file__).parents[2] / "benchmarks" / "fuzz_http.py"))
    report = tools["fuzz"](live, 300, seed=7)
    assert report.faults == []
    assert sum(report.statuses.values()) == 300
    assert {200, 400, 403, 405, 413} <= set(report.statuses)
    assert ask(live, "GET", "/api/controls")[0] == 200


def test_long_lines(port):
    host = f"Host: 127.0.0.1:{port}\r\n".encode()
    for sent in (
        b"GET /" + b"a" * 70_000 + b" HTTP/1.1\r\n" + host + b"\r\n",
        b"GET / HTTP/1.1\r\n" + host + b"A: " + b"a" * 70_000 + b"\r\n\r\n",
        b"GET / HTTP/1.1\r\n" + host + b"".join(b"A%d: 1\r\n" % n for n in range(200)) + b"\r\n",
    ):
        try:
            said = raw(port, sent)
        except ConnectionError:  # hung up on before all was sent
            continue
        assert not said or said[9:10] == b"4"


def test_many_at_once(live):
    asked = json.dumps({"construction": "kgram", "k": 3, "vocabulary": 6, "input": "(012345)^160"})
    found = []
    ways = [
        threading.Thread(target=lambda p=p: found.append(ask(live, "POST", p, asked, JSON)[0]))
        for p in PANELS
    ]
    for way in ways:
        way.start()
    for way in ways:
        way.join(15)
    assert found == [200] * 3


def test_port_in_use_is_one_line(port, capsys):
    assert main(["explore", "--no-browser", "--port", str(port)]) == 2
    said = capsys.readouterr()
    assert said.err.count("\n") == 1
    assert f"cannot serve on port {port}" in said.err
    assert main(["explore", "--port", "70000"]) == 2
    assert "between 0 and 65535" in capsys.readouterr().err


def test_listens_on_this_computer_alone():
    with serving(0) as server:
        assert server.server_address[0] == "127.0.0.1"


@pytest.mark.skipif(sys.platform == "win32", reason="interrupts are signals here")
def test_an_interrupt_just_after_a_request_was_served_is_heard(monkeypatch):
    """It may come while the server waits for the thread of a request to begin, which by then has ended; the
    place of the request is freed once.
    """

    def served_and_interrupted(server, request, address):
        server.process_request_thread(request, address)
        raise KeyboardInterrupt

    monkeypatch.setattr(socketserver.ThreadingMixIn, "process_request", served_and_interrupted)
    with serving(0) as server:
        asking = threading.Thread(target=ask, args=(server.server_port, "GET", "/"))
        asking.start()
        with pytest.raises(KeyboardInterrupt):
            server.handle_request()
        asking.join()
        free = [server.places.acquire(blocking=False) for _ in range(door.MOST_CLIENTS + 1)]
    assert free == [True] * door.MOST_CLIENTS + [False]


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM"])
def test_signals_end_it_cleanly(name):
    """Also where there is no browser, and where one is told that does not exist."""
    import signal

    command = [sys.executable, "-m", "lengthwise", "explore", "--port", "0"]
    about = {key: value for key, value in os.environ.items() if key not in ("DISPLAY", "WAYLAND_DISPLAY")}
    about |= {"BROWSER": "no-such-browser"} if name == "SIGTERM" else {}
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, env=about, **pipes) as running:
        try:
            assert running.stdout is not None
            address = running.stdout.readline()
            assert "http://127.0.0.1:" in address
            port = int(address.split("127.0.0.1:")[1].split("/")[0])
            assert ask(port, "GET", "/")[0] == 200
            running.send_signal(getattr(signal, name))
            _, errors = running.communicate(timeout=30)
        finally:
            running.kill()
    assert running.returncode == 0
    assert errors == ""

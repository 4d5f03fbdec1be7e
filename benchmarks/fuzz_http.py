"""Send ``lengthwise explore`` requests that no browser would, and see that each is answered as HTTP asks.

    python benchmarks/fuzz_http.py [requests] [seed]

Bytes without sense, valid requests with bytes or JSON values changed, huge and deep bodies, odd numbers and
letters, wrong methods, hosts and origins, requests cut off or one behind the other. Every answer must be
whole, in time, of a known status, with one sentence in JSON where it is a refusal; the server must answer as
before in the end, and have nothing to say on stderr.
"""

import json
import random
import signal
import socket
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

PATHS = ["/", "/style.css", "/main.js", "/icon.svg", "/api/controls"]
PANELS = ["/api/bound", "/api/simulation", "/api/attention"]
STATUSES = {200, 400, 403, 404, 405, 408, 411, 413, 414, 415, 431, 503}
CLIENTS = 4

ODD = [
    *(None, True, False, [], {}, "", "infinite", "Infinity", "nan", "1e3", -0.0, 0, -1, 1e-320, 1e308, 2**53),
    *(10**40, 10**400, 0.1 + 0.2, "\uff10\uff11", "\ud800", "\x00", "😀" * 30, "(" * 900, "0^(9^9)"),
    *([[[[]]]], {"construction": "modp"}, "../../etc/passwd", "'; --", "<script>", "0" * 1001, "1" * 3999),
]  # fmt: skip

VALID = [
    {"construction": "simple", "omega": 8, "knots": 64, "bits": 16, "tolerance": 0.1, "input": "(0110)^9"},
    {"construction": "simple", "omega": 32, "knots": 9, "bits": "infinite", "tolerance": 1e-4, "input": "01"},
    {
        "construction": "modp",
        "period": 5,
        "residue": 2,
        "margin": 4,
        "bits": 16,
        "tolerance": 0.2,
        "input": "0,1",
    },
    {"construction": "modp", "period": 12, "residue": 0, "margin": 0.05, "bits": 64, "input": "1^99 0"},
    {
        "construction": "kgram",
        "k": 2,
        "vocabulary": 3,
        "margin": 7.5,
        "tolerance": 0.1,
        "input": "(0121)^9 01",
    },
    {"construction": "kgram", "k": 1, "vocabulary": 6, "margin": 50, "tolerance": 1, "input": "012345"},
]


@dataclass
class Report:
    """What came back."""

    statuses: Counter[int | str] = field(default_factory=Counter)
    slowest: float = 0.0
    faults: list[str] = field(default_factory=list)


def fuzz(port: int, count: int, seed: int = 0, *, seconds: float = 20.0) -> Report:
    """Send ``count`` requests, several at once; an answer that takes longer than ``seconds`` is a fault."""
    report = Report()

    def one(number: int) -> None:
        dice = random.Random(f"{seed} {number}")
        make = dice.choices(MAKERS, WEIGHTS)[0]
        sent = make(dice, port)
        before = time.monotonic()
        try:
            said = exchange(port, sent, seconds)
            took = time.monotonic() - before
            status = judge(sent, said)
        except (AssertionError, ValueError, OSError) as error:
            report.faults.append(f"request {number} ({make.__name__}, {sent[:80]!r}): {error!r}"[:400])
            return
        report.statuses[status] += 1
        report.slowest = max(report.slowest, took)
        if took > seconds:
            report.faults.append(f"request {number} ({make.__name__}) took {took:.1f} s")

    with ThreadPoolExecutor(CLIENTS) as clients:
        list(clients.map(one, range(count)))
    return report


def exchange(port: int, sent: bytes, seconds: float) -> bytes:
    """All that the server says to some bytes, after which nothing is sent."""
    with socket.create_connection(("127.0.0.1", port), timeout=seconds) as talk:
        talk.sendall(sent)
        talk.shutdown(socket.SHUT_WR)
        said = b""
        while part := talk.recv(65536):
            said += part
        return said


def judge(sent: bytes, said: bytes) -> int | str:
    """The status of an answer, or "nothing" where nothing was asked; ``AssertionError`` if it is wrong."""
    if not sent:
        assert not said, "an answer to nothing"
        return "nothing"
    head, _, body = said.partition(b"\r\n\r\n")
    first, *lines = head.decode("latin-1").split("\r\n")
    version, status, _ = first.split(" ", 2)
    assert version in ("HTTP/1.0", "HTTP/1.1"), first
    assert int(status) in STATUSES, first
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    assert b"Traceback" not in said
    if status == "503":
        return 503
    if sent.startswith(b"HEAD ") and status == "200":
        assert not body, "a body after HEAD"
        return 200
    if not body and sent.startswith(b"HEAD "):
        return int(status)
    assert len(body) == int(headers["content-length"]), "a body of another length than told"
    assert "content-security-policy" in headers
    if status != "200":
        told = json.loads(body)
        assert list(told) == ["error"], told
        assert 0 < len(told["error"]) < 400, told
        assert "\n" not in told["error"], told
    elif headers["content-type"] == "application/json":
        json.loads(body, parse_constant=lambda name: 1 / 0)
    return int(status)


def request(
    port: int, method: str, path: str, body: bytes | None = None, headers: list[str] | None = None
) -> bytes:
    """A request as a browser writes it, with more headers if given."""
    lines = [f"{method} {path} HTTP/1.1", f"Host: 127.0.0.1:{port}", *(headers or [])]
    if body is not None:
        lines += ["Content-Type: application/json", f"Content-Length: {len(body)}"]
    return "\r\n".join([*lines, "", ""]).encode("utf-8", "surrogatepass") + (body or b"")


def sensible(dice: random.Random, port: int) -> bytes:
    if dice.random() < 0.2:
        return request(port, dice.choice(["GET", "HEAD"]), dice.choice(PATHS))
    return request(port, "POST", dice.choice(PANELS), json.dumps(dice.choice(VALID)).encode())


def changed_values(dice: random.Random, port: int) -> bytes:
    body = dict(dice.choice(VALID))
    for _ in range(dice.randint(1, 3)):
        key = dice.choice([*body, "nothing", "Omega", "", "input", "construction"])
        turn = dice.random()
        if turn < 0.1:
            body.pop(key, None)
        elif turn < 0.4:
            body[key] = dice.choice([dice.uniform(-2, 70), dice.randint(-2, 70), 10 ** dice.uniform(-8, 8)])
        elif turn < 0.6:
            body[key] = "".join(dice.choices("0123 ,()^\t9a", k=dice.randint(0, 60)))
        else:
            body[key] = dice.choice(ODD)
    text = json.dumps(body, ensure_ascii=dice.random() < 0.5)
    return request(port, "POST", dice.choice(PANELS), text.encode("utf-8", "surrogatepass"))


def changed_json(dice: random.Random, port: int) -> bytes:
    text = json.dumps(dice.choice(VALID))
    for _ in range(dice.randint(1, 4)):
        at = dice.randrange(len(text))
        piece = dice.choice(
            ['"', "{", "}", "[", ",", ":", "NaN", "Infinity", "-", "1e999", "9" * 5000, "\\u0000", ""]
        )
        text = text[:at] + piece + text[at + dice.randint(0, 3) :]
    return request(port, "POST", dice.choice(PANELS), text.encode())


def deep_or_huge(dice: random.Random, port: int) -> bytes:
    size = dice.choice([1000, 10_000, 16_000, 16_385, 100_000, 900_000])
    opener = dice.choice(["[", '{"a":', '{"input":"', " ", "9", "\u00e9", '{"omega":1' + "0" * 4000 + ","])
    body = (opener * (size // len(opener) + 1)).encode()[:size]
    return request(port, "POST", dice.choice(PANELS), body)


def flipped_bytes(dice: random.Random, port: int) -> bytes:
    sent = bytearray(sensible(dice, port))
    for _ in range(dice.randint(1, 8)):
        at = dice.randrange(len(sent))
        turn = dice.random()
        if turn < 0.5:
            sent[at] = dice.randrange(256)
        elif turn < 0.75:
            del sent[at : at + dice.randint(1, 20)]
            sent = sent or bytearray(b"x")
        else:
            sent[at:at] = dice.randbytes(dice.randint(1, 20))
    return bytes(sent)


def cut_off(dice: random.Random, port: int) -> bytes:
    sent = sensible(dice, port)
    return sent[: dice.randrange(len(sent))]


def noise(dice: random.Random, port: int) -> bytes:
    return dice.randbytes(dice.choice([0, 1, 2, 17, 300, 70_000])) + dice.choice([b"", b"\r\n\r\n", b"\n\n"])


def pipelined(dice: random.Random, port: int) -> bytes:
    return sensible(dice, port) + dice.choice([flipped_bytes, noise, sensible, deep_or_huge])(dice, port)


def odd_request(dice: random.Random, port: int) -> bytes:
    method = dice.choice(["GET", "POST", "PUT", "OPTIONS", "TRACE", "CONNECT", "PATCH", "get", "X" * 300, ""])
    places = [
        "*",
        "//evil.example/",
        "http://127.0.0.1/",
        "/..%2f..%2fetc/passwd",
        "/%00",
        "/" + "a" * 70_000,
        "/?a=1",
    ]
    path = dice.choice([*PATHS, *PANELS, *places, "/[", "//[::1", "/\x7f", "/ü"])
    version = dice.choice(
        ["HTTP/1.1", "HTTP/1.0", "HTTP/0.9", "HTTP/2.0", "HTTP/1.1.1", "HTTP/x", "http/1.1", ""]
    )
    headers = dice.sample(
        [
            f"Host: 127.0.0.1:{port}",
            "Host: evil.example",
            "Origin: http://evil.example",
            "Origin: null",
            "Sec-Fetch-Site: cross-site",
            "Content-Length: -1",
            "Content-Length: 99999999999999999999",
            "Content-Length: 1e3",
            "Content-Length: 2",
            "Transfer-Encoding: chunked",
            "Content-Type: text/plain",
            "Content-Type: application/json; charset=\xff",
            "Expect: 100-continue",
            "Connection: keep-alive",
            "Cookie: " + "a" * dice.choice([10, 70_000]),
            ": nothing",
            "no colon",
            " folded",
            "X\x00: 1",
            *[f"A{number}: 1" for number in range(dice.choice([0, 150]))],
        ],
        dice.randint(0, 8),
    )
    head = "\r\n".join([f"{method} {path} {version}", *headers, "", ""])
    return head.encode("utf-8", "replace") + dice.choice([b"", b"{}", b"2\r\n{}\r\n0\r\n\r\n"])


MAKERS: list[Callable[[random.Random, int], bytes]] = [
    *(
        sensible,
        changed_values,
        changed_json,
        deep_or_huge,
        flipped_bytes,
        cut_off,
        noise,
        pipelined,
        odd_request,
    )
]
WEIGHTS = [5, 30, 10, 3, 15, 7, 5, 5, 20]


def main() -> None:
    """Start a server, send, tell."""
    count, seed = (int(given) for given in (*sys.argv[1:], *["20000", "0"][len(sys.argv) - 1 :]))
    command = [sys.executable, "-m", "lengthwise", "explore", "--no-browser", "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        port = int(server.stdout.readline().split("127.0.0.1:")[1].split("/")[0])
        before = time.monotonic()
        report = fuzz(port, count, seed)
        took = time.monotonic() - before
        asked = request(port, "POST", "/api/bound", json.dumps(VALID[2]).encode())
        alive = judge(asked, exchange(port, asked, 20))
        server.send_signal(signal.SIGTERM)
        _, errors = server.communicate(timeout=30)
    print(f"{count} requests in {took:.0f} s, the slowest {report.slowest:.2f} s")
    print(
        "statuses:",
        ", ".join(f"{status}: {number}" for status, number in sorted(report.statuses.items(), key=str)),
    )
    print(f"afterwards: {alive}; exit status {server.returncode}; stderr: {errors or 'empty'}")
    for fault in report.faults[:20]:
        print("fault:", fault)
    if report.faults or errors or alive != 200 or server.returncode:
        sys.exit(f"{len(report.faults)} faults")


if __name__ == "__main__":
    main()

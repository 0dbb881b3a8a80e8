"""A small server that speaks OpenAI's chat completions over a real socket, and misbehaves when told
to.
"""

import hashlib
import json
import socket
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

CITIES = ("Paris", "Lyon", "Lille", "Nice", "Metz")

Fault = Callable[["Exchange", dict[str, Any]], bool]  # whether it has answered


class ChatServer:
    """Serve in a thread. An answer follows from the messages and the request's seed.

    ``fault(number, body)`` may name a fault for the request with this number, counted from 0. What
    was asked is in ``asked``."""

    def __init__(
        self,
        *,
        fault: Callable[[int, dict[str, Any]], Fault | None] = lambda number, body: None,
        software: str = "vllm",
        models: tuple[str, ...] = ("smollm2-135m",),
        choice: Callable[[int], dict[str, Any]] | None = None,  # what differs in answer number i
        prompt_tokens: int = 40,
        key: str | None = None,
        listing: Fault | None = None,  # what becomes of the list of models
    ) -> None:
        self.fault = fault
        self.software = software
        self.models = models
        self.choice = choice
        self.prompt_tokens = prompt_tokens
        self.key = key
        self.listing = listing
        self.asked: list[dict[str, Any]] = []
        self.at_once = self.most_at_once = 0
        self.lock = threading.Lock()
        self.port = 0
        self.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    def start(self) -> None:
        self.http = _Server(("127.0.0.1", self.port), Exchange)
        self.http.chat = self
        self.port = self.http.server_address[1]
        self.thread = threading.Thread(
            target=self.http.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True
        )
        self.thread.start()

    def stop(self) -> None:
        """Die: connections that are open break."""
        self.http.shutdown()
        self.http.server_close()
        for connection in self.http.connections:
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
        self.thread.join()

    def __enter__(self) -> "ChatServer":
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def completion(self, body: dict[str, Any]) -> dict[str, Any]:
        """Return the answer to the request that was asked last."""
        choice = self.reply(body)
        said = len(choice["message"]["content"] or "")
        tokens = min(max(said, 1), body["max_tokens"])
        usage = {"prompt_tokens": self.prompt_tokens, "completion_tokens": tokens}
        head = {"object": "chat.completion", "model": body["model"]}
        return head | {"choices": [{"index": 0} | choice], "usage": usage}

    def reply(self, body: dict[str, Any]) -> dict[str, Any]:
        seed = body.get("seed", 0)
        key = repr((body["messages"], seed)).encode()
        city = CITIES[hashlib.sha256(key).digest()[0] % len(CITIES)]
        choice: dict[str, Any] = {
            "message": {"role": "assistant", "content": f"It is {city} ({seed})."},
            "finish_reason": "stop",
        }
        return choice | (self.choice(len(self.asked) - 1) if self.choice else {})


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 1024
    allow_reuse_address = True
    chat: ChatServer

    def __init__(self, *where: Any) -> None:
        self.connections: list[Any] = []
        super().__init__(*where)

    def process_request(self, request: Any, client_address: Any) -> None:
        self.connections.append(request)
        super().process_request(request, client_address)

    def handle_error(self, request: object, client_address: object) -> None:
        """Say nothing when a client has gone away."""


class Exchange(BaseHTTPRequestHandler):
    """One request and its answer."""

    protocol_version = "HTTP/1.1"
    wbufsize = 1 << 16  # headers and body in one packet
    server: _Server

    def log_message(self, *_: object) -> None:
        pass

    def do_GET(self) -> None:
        chat = self.server.chat
        if chat.listing and chat.listing(self, {}):
            return
        if chat.key and self.headers["Authorization"] != f"Bearer {chat.key}":
            self.say(401, {"error": {"message": "wrong key"}})
        elif self.path == "/v1/models":
            self.say(
                200, {"data": [{"id": name, "owned_by": chat.software} for name in chat.models]}
            )
        else:
            self.say(404, {"detail": "Not Found"})

    def do_POST(self) -> None:
        chat = self.server.chat
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        with chat.lock:
            number = len(chat.asked)
            chat.asked.append(body)
            chat.at_once += 1
            chat.most_at_once = max(chat.most_at_once, chat.at_once)
        try:
            fault = chat.fault(number, body)
            if fault is None or not fault(self, body):
                self.say(200, chat.completion(body))
        finally:
            with chat.lock:
                chat.at_once -= 1

    def say(self, status: int, content: object, headers: dict[str, str] | None = None) -> None:
        data = content if isinstance(content, bytes) else json.dumps(content).encode()
        self.send_response(status)
        for name, value in {"Content-Length": str(len(data)), **(headers or {})}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(data)


def status(code: int, message: str = "no", **headers: str) -> Fault:
    """Answer with a status and a message, and with headers such as Retry_After."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}

    def answer(exchange: Exchange, body: dict[str, Any]) -> bool:
        exchange.say(code, {"error": {"message": message}}, named)
        return True

    return answer


def raw(content: bytes, **headers: str) -> Fault:
    """Answer 200 with these bytes."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}

    def answer(exchange: Exchange, body: dict[str, Any]) -> bool:
        exchange.say(200, content, named)
        return True

    return answer


def slow(seconds: float) -> Fault:
    """Answer well, but late."""

    def answer(exchange: Exchange, body: dict[str, Any]) -> bool:
        time.sleep(seconds)
        return False

    return answer


def cut(exchange: Exchange, body: dict[str, Any]) -> bool:
    """Break off in the middle of an answer."""
    data = json.dumps(exchange.server.chat.completion(body)).encode()
    exchange.send_response(200)
    exchange.send_header("Content-Length", str(len(data)))
    exchange.end_headers()
    exchange.wfile.write(data[: len(data) // 2])
    exchange.close_connection = True
    return True


def echo(code: int) -> Fault:
    """Refuse, saying what the request was authorized with."""

    def answer(exchange: Exchange, body: dict[str, Any]) -> bool:
        exchange.say(
            code, {"error": {"message": f"bad {exchange.headers['Authorization']}\x1b[2J"}}
        )
        return True

    return answer


def other_model(exchange: Exchange, body: dict[str, Any]) -> bool:
    """Answer well, but as another model."""
    exchange.say(200, exchange.server.chat.completion(body) | {"model": "other\x1b[2J"})
    return True

#!/usr/bin/env python3
"""The same download with the kernel's TCP: any control of /proc/sys/net/ipv4/tcp_available_congestion_control."""

import json
import socket
import sys
import time

PORT = 4433
PART = bytes(64 << 10)


def serve(control: str) -> None:
    """Sends to one client after the other for as long as it reads."""
    with socket.create_server(("0.0.0.0", PORT)) as listener:
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, control.encode())
        while True:
            connection, _ = listener.accept()
            with connection:
                try:
                    while True:
                        connection.sendall(PART)
                except ConnectionError:
                    continue


def get(host: str, seconds: float) -> None:
    """Reads for some seconds."""
    with socket.create_connection((host, PORT)) as connection:
        began, count = time.monotonic(), 0
        while (left := began + seconds - time.monotonic()) > 0:
            connection.settimeout(left)
            try:
                count += len(connection.recv(1 << 20))
            except TimeoutError:
                break
        passed = time.monotonic() - began
    print(json.dumps({"bytes": count, "seconds": passed, "mbps": count * 8e-6 / passed}))


match sys.argv[1:]:
    case ["serve", control]:
        serve(control)
    case ["get", host, seconds]:
        get(host, float(seconds))
    case _:
        sys.exit("error: write: serve CONTROL, or: get HOST SECONDS")

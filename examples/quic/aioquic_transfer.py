"""The same download as the other programs of this directory, with aioquic: `aioquic_transfer.py serve cubic`, `aioquic_transfer.py get far 10`.

Needs aioquic (`pip install aioquic`), in an environment of its own. Its controls are cubic and reno.
"""

import asyncio
import datetime
import json
import socket
import ssl
import sys
import time

from aioquic.asyncio import QuicConnectionProtocol, serve
from aioquic.quic.configuration import QuicConfiguration
from aioquic.quic.connection import QuicConnection
from aioquic.quic.events import QuicEvent, StreamDataReceived
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

PORT = 4433
NAME = "far"
WINDOW = 32 << 20
"""Bytes that a receiver allows: more than any path of `benches/quic.py` holds."""
PART = bytes(64 << 10)
AHEAD = 8 << 20
"""Bytes that wait in the sender: so many that the application never limits the flow."""


def certificate() -> tuple[x509.Certificate, ec.EllipticCurvePrivateKey]:
    """A certificate of the server itself, and its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, NAME)])
    valid = datetime.datetime(2000, 1, 1), datetime.datetime(2099, 1, 1)
    builder = x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key())
    builder = builder.serial_number(1).not_valid_before(valid[0]).not_valid_after(valid[1])
    return builder.sign(key, hashes.SHA256()), key


def settings(is_client: bool, control: str) -> QuicConfiguration:
    """What both ends have."""
    return QuicConfiguration(
        is_client=is_client,
        alpn_protocols=["transfer"],
        max_data=WINDOW,
        max_stream_data=WINDOW,
        congestion_control_algorithm=control,
        verify_mode=ssl.CERT_NONE,
        server_name=NAME,
    )


class Sender(QuicConnectionProtocol):
    """Writes for as long as the client reads."""

    def quic_event_received(self, event: QuicEvent) -> None:
        """A request starts the flow."""
        if isinstance(event, StreamDataReceived):
            self.stream = event.stream_id
            self.keep_full()

    def keep_full(self) -> None:
        """Fills the stream's buffer, a hundred times a second."""
        stream = self._quic._streams.get(self.stream)
        if stream is None or self._quic._close_event is not None:
            return
        while stream.sender._buffer_stop - stream.sender._buffer_start < AHEAD:
            self._quic.send_stream_data(self.stream, PART)
        self.transmit()
        self._loop.call_later(0.01, self.keep_full)


class Receiver(QuicConnectionProtocol):
    """Counts what arrives."""

    bytes = 0

    def quic_event_received(self, event: QuicEvent) -> None:
        """Data of the flow."""
        if isinstance(event, StreamDataReceived):
            self.bytes += len(event.data)


async def run_server(control: str) -> None:
    """Serves until it is ended."""
    configuration = settings(False, control)
    configuration.certificate, configuration.private_key = certificate()
    await serve("0.0.0.0", PORT, configuration=configuration, create_protocol=Sender)
    await asyncio.Event().wait()


async def get(host: str, seconds: float) -> None:
    """Downloads for so many seconds and says how much came. Over IPv4: aioquic's own `connect` opens an IPv6 socket."""
    loop = asyncio.get_running_loop()
    connection = QuicConnection(configuration=settings(True, "cubic"))
    _, receiver = await loop.create_datagram_endpoint(lambda: Receiver(connection), local_addr=("0.0.0.0", 0))
    receiver.connect((socket.gethostbyname(host), PORT))
    await receiver.wait_connected()
    connection.send_stream_data(connection.get_next_available_stream_id(), b"x")
    receiver.transmit()
    began = time.monotonic()
    await asyncio.sleep(seconds)
    taken, received = time.monotonic() - began, receiver.bytes
    receiver.close()
    await receiver.wait_closed()
    print(json.dumps({"bytes": received, "seconds": taken, "mbps": received * 8e-6 / taken}))


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["serve", "cubic" | "reno" as chosen]:
            asyncio.run(run_server(chosen))
        case ["get", host, seconds]:
            asyncio.run(get(host, float(seconds)))
        case _:
            print("error: write: serve cubic, serve reno, or: get HOST SECONDS", file=sys.stderr)
            raise SystemExit(2)

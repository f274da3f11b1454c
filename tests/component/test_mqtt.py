"""Adapters of MQTT as processes, with a real broker: nothing is lost, nothing is double."""

import contextlib
import datetime
import ipaddress
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from espha.adapters.mqtt_output.link import Link, Message
from espha.adapters.mqtt_output.spec import OutputMqtt
from espha.kafka.writer import FencedWriter, Record
from espha.local.ports import HOST
from support.adapters import Adapters, stopped_at_the_end
from support.mosquitto import OPEN, Mosquitto, running
from support.mqtt_peers import Device, Listener
from support.servers import Kafka, ZooKeeper, wait_until

pytestmark = pytest.mark.component

KILLS = 6
ROWS = 150
SUBSCRIBED = re.compile(r" 1 rows/[+#]$", re.MULTILINE)


@pytest.fixture
def net(kafka: Kafka, zookeeper: ZooKeeper, tmp_path: Path) -> Iterator[Adapters]:
    """Empty topics; adapters of the test end with it."""
    with stopped_at_the_end(Adapters(kafka, zookeeper, tmp_path)) as made:
        yield made


@pytest.fixture
def broker() -> Iterator[Mosquitto]:
    """A broker that takes anybody."""
    with running(OPEN) as made:
        yield made


@pytest.fixture
def guarded(tmp_path: Path) -> Iterator[Mosquitto]:
    """A broker that takes those who know a password, and encrypts."""
    make_certificate(tmp_path)
    passwords = tmp_path / "passwords"
    passwords.touch()
    subprocess.run(["mosquitto_passwd", "-b", passwords, "espha", "not-to-be-seen"], check=True)
    settings = (
        "allow_anonymous false",
        f"password_file {passwords}",
        f"cafile {tmp_path / 'ca.pem'}",
        f"certfile {tmp_path / 'ca.pem'}",
        f"keyfile {tmp_path / 'key.pem'}",
        "require_certificate true",
    )
    with running(settings) as made:
        yield made


def make_certificate(folder: Path) -> None:
    """Write a certificate of the loopback address that is its own authority, and its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, HOST)])
    address = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address(HOST))])
    now, day = datetime.datetime.now(datetime.UTC), datetime.timedelta(days=1)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - day)
        .not_valid_after(now + day)
        .add_extension(address, critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    (folder / "ca.pem").write_bytes(made.public_bytes(serialization.Encoding.PEM))
    (folder / "key.pem").write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )


def test_messages_are_published_once_whatever_is_killed(net: Adapters, broker: Mosquitto) -> None:
    """A pair whose active adapter is killed; a broker that is ended, and one that is killed.

    What the broker had not written down when it was killed, only the device still has: it sends
    that again.
    """
    plain = {"opcode": False, "flags": False, "autogenField": False}
    given = {"broker": broker.address, "topic": "rows/+", "format": plain}
    for number in range(2):
        net.start(f"rows-{number}", "input", mqtt=given)
    device = Device(broker, "rows/1")

    def subscribed() -> bool:
        text = broker.log.read_text().rpartition("starting")[2]
        return SUBSCRIBED.search(text) is not None

    wait_until(subscribed, 60, "an adapter has subscribed")
    for kill in range(KILLS):
        count = (kill + 1) * ROWS
        device.send(count)
        if kill % 3 == 1:
            broker.end()
            broker.start()
        elif kill == KILLS - 1:
            broker.kill()
            broker.start()
            wait_until(subscribed, 60, "the adapter has subscribed again")
            device.send(count, first=len(net.published()))
        else:
            net.kill_active()
    wait_until(lambda: len(net.published()) >= KILLS * ROWS, 120, "the last row")
    assert net.published() == [f"I,N,,{number},0,0,1" for number in range(KILLS * ROWS)]


@pytest.mark.parametrize("qos", [1, 2])
def test_rows_reach_the_broker_once_by_their_ids(
    net: Adapters, broker: Mosquitto, qos: int
) -> None:
    """Adapters that are killed, and a broker that is ended and started again."""
    with contextlib.closing(Listener(broker, "results")) as listener:
        given = {"broker": broker.address, "topic": "results", "qos": qos}
        net.start("results-0", "output", mqtt=given)
        writer = FencedWriter(net.kafka.bootstrap, f"test-{net.prefix}")
        writer.fence()
        expected: list[str] = []
        for kill in range(KILLS):
            for _ in range(10):
                rows = [f"I,N, {len(expected) + one},1,2" for one in range(10)]
                writer.commit([Record(net.output_topic, row.encode()) for row in rows])
                expected += rows
            goal = len(expected) - 50
            wait_until(lambda goal=goal: len(listener.rows) >= goal, 120, "messages")  # type: ignore[misc]
            if kill % 3 == 1:
                broker.end()
                broker.start()
            else:
                net.kill_active()
        wait_until(lambda: len(listener.rows) >= len(expected), 120, "the last message")
        assert list(listener.rows.values()) == expected
        assert listener.differ == 0


@contextlib.contextmanager
def command_line(net: Adapters, *words: str) -> Iterator[None]:
    """Run `espha adapter mqtt …` as long as the block lasts."""
    command = [sys.executable, "-m", "espha.cli", "adapter", "mqtt", *words]
    environment = {**os.environ, **net.environment}
    with subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL) as process:
        try:
            yield
        finally:
            process.terminate()


def test_command_lines_bring_rows_in_and_results_out(net: Adapters, broker: Mosquitto) -> None:
    """With the properties of connectors as options."""
    place = ("--mqtthost", HOST, "--mqttport", str(broker.port))
    columns = ("--addcsvopcode=true", "--addcsvflags=normal", "--noautogenfield=true")
    url = "dfESP://engine:61001/HA_Project/cq"
    sub = ("--type=sub", f"--url={url}/outbound", *place, "--mqtttopic=results")
    pub = ("--type=pub", f"--url={url}/memory", *place, "--mqtttopic=rows/#", *columns)
    with (
        contextlib.closing(Listener(broker, "results")) as listener,
        command_line(net, *sub),
        command_line(net, *pub),
    ):
        wait_until(lambda: bool(SUBSCRIBED.search(broker.log.read_text())), 60, "it has subscribed")
        Device(broker, "rows/1").send(3)
        wait_until(lambda: len(net.published()) == 3, 60, "the rows")
        writer = FencedWriter(net.kafka.bootstrap, f"test-{net.prefix}")
        writer.fence()
        writer.commit([Record(net.output_topic, b"I,N, 1,1,2")])
        wait_until(lambda: list(listener.rows.values()) == ["I,N, 1,1,2"], 60, "the result")


def test_password_and_certificates_come_from_the_environment(
    guarded: Mosquitto, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without the password, the broker's refusal is said; the password is not."""
    given = OutputMqtt(broker=guarded.address, topic="results", tls=True)
    for name, file in (("CA", "ca.pem"), ("CERTIFICATE", "ca.pem"), ("KEY", "key.pem")):
        monkeypatch.setenv(f"MQTT_{name}_FILE", str(tmp_path / file))
    with pytest.raises(OSError, match="Not authorized"):
        Link(given, "nobody").send([Message("1", b"x")])
    monkeypatch.setenv("MQTT_USERNAME", "espha")
    monkeypatch.setenv("MQTT_PASSWORD", "not-to-be-seen")
    assert Link(given, "somebody").send([Message("1", b"x"), Message("2", b"y")]) == 2
    monkeypatch.delenv("MQTT_CA_FILE")
    with pytest.raises(OSError, match="self-signed"):
        Link(given, "somebody").send([Message("1", b"x")])

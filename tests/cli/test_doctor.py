"""What `doctor` says of machines that this one is not, and its document."""

import json
from dataclasses import replace

import jsonschema
import pytest

from conftest import ROOT
from tcpscape.cli import doctor
from tcpscape.engines import host
from tcpscape.engines.host import survey
from tcpscape.engines.host.survey import KernelNetem, Lateness, NetemCheck, Survey
from tcpscape.schemas.documents import DOCUMENTS

WELL = Survey(
    kernel="6.12.1",
    settings={"user.max_user_namespaces": "9"},
    backends={"packet": None},
    queues={"netem": None, "tbf": None},
    netem=KernelNetem(True, None, True),
    controls=("reno", "cubic"),
    realtime=1,
    late=Lateness(50, 900, 2000),
    late_realtime=Lateness(9, 80, 90),
    rate_mbps=1900.0,
    rate_offload_mbps=6000.0,
    btf=True,
)
BLOCKED = "kernel.unprivileged_userns_clone = 0: users may not; sudo sysctl -w kernel.unprivileged_userns_clone=1"
TREE = NetemCheck("tree", "tbf; netem", "accepted", "refused: no", False)
LATE = NetemCheck("delay", "netem delay 20ms", "20 ms", "24 ms", False)
MACHINES = {
    "well": (WELL, {}),
    "no user namespaces": (
        replace(WELL, unavailable=BLOCKED, root_unavailable="only root may; leave +root out"),
        {"engine live": "sudo sysctl -w kernel.unprivileged_userns_clone=1", "user namespaces": "sudo sysctl -w kernel.unprivileged_userns_clone=1"},
    ),
    "only root": (
        replace(WELL, unavailable=BLOCKED),
        {"engine live": "use --engine live:emulator+root", "user namespaces": "sudo sysctl -w kernel.unprivileged_userns_clone=1"},
    ),
    "no AF_PACKET": (
        replace(WELL, backends={"packet": "packets of device fwd: it takes CAP_NET_RAW"}),
        {"live:emulator": "AF_PACKET: packets of device fwd: it takes CAP_NET_RAW"},
    ),
    "no netem": (
        replace(WELL, netem=KernelNetem(False, "this kernel has no netem: modprobe sch_netem", False)),
        {"live:netem": "modprobe sch_netem"},
    ),
    "bad netem": (
        replace(WELL, netem=KernelNetem(True, "netem does not do what it is told: 20 ms asked", False, (LATE,))),
        {"live:netem": "use --engine live:emulator"},
    ),
    "few queues": (
        replace(WELL, queues={"netem": None, "cake": "modprobe sch_cake"}),
        {"queues": "modprobe sch_cake, or a kernel that has them; live:emulator has them all"},
    ),
    "modules": (replace(WELL, loadable=("vegas", "westwood")), {"congestion controls": "sudo modprobe tcp_vegas"}),
    "no BTF": (replace(WELL, btf=False), {"BPF controls": "a kernel with CONFIG_DEBUG_INFO_BTF"}),
    "no priority": (
        replace(WELL, realtime=0, late_realtime=None),
        {"real-time priority": "allow it to the container: --cap-add SYS_NICE or --ulimit rtprio=2", "timers": "end what else runs here"},
    ),
    "busy": (
        replace(WELL, late=None, late_realtime=None, rate_mbps=None, netem=None, unmeasured="a trial is running"),
        {"live:netem": "a trial is running", "timers": "a trial is running", "highest rate": "a trial is running"},
    ),
}
"""Machines, and what is to be done on each, by line."""


@pytest.mark.parametrize("name", MACHINES)
def test_each_lack_has_a_line_and_what_to_do(name, monkeypatch):
    monkeypatch.setattr(doctor.shutil, "which", lambda name, path=None: f"/usr/sbin/{name}")
    monkeypatch.setattr(doctor.os, "geteuid", lambda: 0)
    found, fixes = MACHINES[name]
    told = {what: check(found) for what, check in doctor.LIVE.items()}
    assert {what: fix for what, (_, fix) in told.items() if fix} == fixes
    assert all(text for text, _ in told.values())


def test_a_tree_that_netem_refuses_is_named():
    text, fix = doctor.LIVE["live:netem"](replace(WELL, netem=KernelNetem(True, None, False, (TREE,))))
    assert text == "does what it is told, without a seed of its own; not in 1 of the trees that were tried: tbf; netem"
    assert fix == ""


def test_its_document_has_its_schema_and_this_machine(cli):
    if reason := host.unavailable():
        pytest.skip(f"the live engine's program: {reason}")
    document = json.loads(cli("doctor", "--json").out)
    jsonschema.validate(document, DOCUMENTS["doctor"].schema())
    assert [finding["what"] for finding in document["findings"]] == [*doctor.CHECKS, *doctor.LIVE]
    assert document["live"]["unavailable"] is None
    assert document["live"]["queues"]["pfifo"] is None


def test_what_controls_in_bpf_need_is_named(monkeypatch):
    monkeypatch.setattr(doctor.shutil, "which", lambda name, path=None: None)
    assert doctor.LIVE["BPF controls"](WELL) == ("BTF is there, bpftool is missing", "apt-get install bpftool")
    monkeypatch.setattr(doctor.shutil, "which", lambda name, path=None: f"/usr/sbin/{name}")
    monkeypatch.setattr(doctor.os, "geteuid", lambda: 65534)
    assert doctor.LIVE["BPF controls"](WELL) == ("only root may load them", "sudo tcpscape cca load FILE")


def test_the_priority_to_allow_is_the_one_that_is_asked_for(monkeypatch):
    source = (ROOT / "crates" / "live" / "src" / "spaces" / "realtime.rs").read_text()
    assert f"pub const PRIORITY: u64 = {survey.PRIORITY};" in source
    for user, fix in ((0, f"--ulimit rtprio={survey.PRIORITY}"), (65534, f" - rtprio {survey.PRIORITY}` into /etc/security/limits.conf")):
        monkeypatch.setattr(survey.os, "geteuid", lambda user=user: user)
        assert fix in survey.realtime_fix()


def test_modules_of_controls_are_found_compressed_or_not(tmp_path, monkeypatch):
    folder = tmp_path / survey.platform.release() / "kernel" / "net" / "ipv4"
    folder.mkdir(parents=True)
    for file in ("tcp_vegas.ko", "tcp_bbr.ko.xz", "tcp_cubic.ko.zst", "tcp_diag.ko", "udp_diag.ko"):
        (folder / file).touch()
    monkeypatch.setattr(survey, "MODULES", tmp_path)
    assert survey._loadable(["cubic"]) == ("bbr", "vegas")


def test_a_running_trial_is_waited_for_only_so_long(monkeypatch):
    if reason := host.unavailable():
        pytest.skip(f"the live engine's program: {reason}")
    monkeypatch.setattr(survey, "TURN_S", 0.2)
    with host.alone(lambda: False):
        found = survey.survey()
    assert found.unmeasured == "a trial in real time is running; ask again when it is over"
    assert found.queues
    assert found.late is None

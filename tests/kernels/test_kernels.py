"""Kernels: sources, links, configuration, builds; on a tree that is no kernel but answers like one, and once on the real one."""

import fcntl
import io
import os
import shutil
import subprocess
import tarfile
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

import pytest

from patience import PATIENCE_S
from tcpscape import _core, kernels
from tcpscape.errors import EngineError
from tcpscape.kernels import build as building
from tcpscape.kernels import config, source
from tcpscape.kernels.build import BuildOptions
from tcpscape.kernels.source import BuildProgress
from tcpscape.scenario import profiles

MAKEFILE = """\
objects := $(patsubst net/ipv4/%.c,$(O)/%.o,$(wildcard net/ipv4/*.c))
linux: $(objects)
	@mkdir -p $(O)/include/config && echo 6.1.7 > $(O)/include/config/kernel.release
	@cat $^ > $(O)/linux && echo "  LINK    linux"
$(O)/%.o: net/ipv4/%.c
	@echo "  CC      $<"
	@! grep -q BROKEN $< || { echo "$(CURDIR)/$<:3:1: error: expected ;"; echo "make: *** later"; exit 1; }
	@cp $< $@
allnoconfig:
	@grep -v -e DUALPI2 -e UNKNOWN $(KCONFIG_ALLCONFIG) > $(O)/.config
	@echo configured; echo once >> $(O)/configured
"""
TREE = {
    "Makefile": MAKEFILE,
    "Kconfig": 'mainmenu "Fake"\n',
    "arch/um/Kconfig": "config HZ\n",
    "arch/arm/kernel/head.c": "",
    "arch/arm/Kconfig": "",
    "net/ipv4/Kconfig": "config TCP_CONG_ADVANCED\nconfig TCP_CONG_BBR\nconfig TCP_CONG_HSTCP\n\tconfig TCP_CONG_OURS\nconfig TOGETHER\n",
    "net/ipv4/Makefile": "obj-$(CONFIG_TCP_CONG_BBR) += tcp_bbr.o\nobj-$(CONFIG_TCP_CONG_HSTCP) += tcp_highspeed.o\nobj-$(CONFIG_TCP_CONG_OURS) += tcp_ours.o\n",
    "net/ipv4/tcp_bbr.c": "/* nothing to read here */\n",
    "net/ipv4/tcp_highspeed.c": 'static struct tcp_congestion_ops hs __read_mostly = {\n\t.init = f,\n\t.name\t\t= "highspeed",\n};\nreturn tcp_register_congestion_control(&hs);\n',
    "net/ipv4/tcp_ours.c": """
static struct tcp_congestion_ops fallback = { .name = "never", };
struct tcp_congestion_ops ours = { .init = init, .name = "ours-1", };
struct tcp_congestion_ops both = { .name = "ours-2", };
int f(void) { tcp_unregister_congestion_control(&fallback); return tcp_register_congestion_control(&ours) + tcp_register_congestion_control( &both); }
""",
    "net/sched/Makefile": "obj-$(CONFIG_NET_SCH_NETEM) += sch_netem.o\n",
    "net/sched/sch_netem.c": 'static struct Qdisc_ops n = { .id = "netem" }; return register_qdisc(&n);\n',
    "include/asm-generic/vmlinux.lds.h": "",
    "drivers/gpu/drm/big.c": "",
    "drivers/gpu/drm/Makefile": "",
}
LEFT_BY_A_BUILD = [
    ".config",
    "include/config/auto.conf",
    "include/generated/autoconf.h",
    "arch/x86/include/generated/a.h",
    "net/ipv4/tcp_bbr.o",
    "net/ipv4/.tcp_bbr.o.cmd",
    "vmlinux",
    "vmlinux.o",
    "arch/x86/kernel/vmlinux.lds",
    "scripts/kconfig/lexer.lex.c",
    "modules.order",
    "net/ipv4/built-in.a",
    ".git/HEAD",
]


def fill(where, said=TREE):
    for name, text in said.items():
        (where / name).parent.mkdir(parents=True, exist_ok=True)
        (where / name).write_text(text)
    return where


def picture(where):
    """Everything in a directory, with contents and times."""
    return {p.relative_to(where): (p.lstat().st_mtime_ns, p.read_bytes() if p.is_file() else b"") for p in sorted(where.rglob("*"))}


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch, request):
    """A cache of the test's own, and no question about tools, except for the real build."""
    if "slow" in request.keywords:
        return kernels.home()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(building, "check_tools", lambda: None)
    monkeypatch.setattr(building, "compiler_version", lambda: "cc 1")
    monkeypatch.setattr(building, "check_machine", lambda: None)
    return tmp_path / "cache" / "tcpscape" / "kernels"


@pytest.fixture
def tree(tmp_path):
    if shutil.which("make") is None:
        pytest.skip("make is missing")
    return fill(tmp_path / "mine")


def edit(path, text):
    """Writes a file so that make sees it as newer, whatever the clock's grain."""
    path.write_text(text)
    os.utime(path, ns=(path.stat().st_atime_ns, path.stat().st_mtime_ns + 2_000_000_000))


def archive(path, said, around="linux-9.9/"):
    with tarfile.open(path, "w:gz") as tar:
        for name, text in said.items():
            member = tarfile.TarInfo(f"{around}{name}")
            member.size = len(text)
            tar.addfile(member, io.BytesIO(text.encode()))
    return path


# Names and the store


@pytest.mark.parametrize("name", ["", "a/b", "..", ".hidden", "-x", "a b", "x" * 65, "ä"])
def test_names_are_checked(name):
    with pytest.raises(EngineError, match=r"name: .*cannot name a kernel; use letters"):
        kernels.place(name)


def test_the_cache_follows_xdg(monkeypatch, tmp_path, cache):
    assert kernels.home() == cache
    monkeypatch.setenv("XDG_CACHE_HOME", "relative/is/not/valid")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert kernels.home() == tmp_path / ".cache" / "tcpscape" / "kernels"


def test_without_a_kernel_the_list_says_what_to_do(cli):
    assert "no kernel is built yet; run `tcpscape kernel build`" in cli("kernel", "list").out


def test_the_default_is_6_1_or_the_first(tree):
    first = building.build(BuildOptions(str(tree), name="zz"))
    building.build(BuildOptions(str(tree), name="aa"))
    kernels.save(replace(first, created="2020-01-01T00:00:00+00:00"))
    assert kernels.default().name == kernels.find().name == "zz"
    building.build(BuildOptions(str(tree), name="6.1"))
    assert kernels.default().name == "6.1"
    assert [kernel.name for kernel in kernels.built_kernels()] == ["6.1", "aa", "zz"]


def test_a_record_of_another_version_counts_as_unfinished(tree, cache, cli, monkeypatch):
    building.build(BuildOptions(str(tree)))
    (cache / "mine" / "kernel.json").write_text("{}")
    assert kernels.built_kernels() == ()
    assert "not finished" in cli("kernel", "list").out
    assert cli("kernel", "remove", "mine").status == 0
    assert kernels.names() == ()
    building.build(BuildOptions(str(tree)))
    assert "older configuration" not in cli("kernel", "list").out
    monkeypatch.setattr(config, "OVERLAY", config.OVERLAY + "# and more\n")
    assert "6.1.7 (older configuration: build it again)" in cli("kernel", "list").out
    building.build(BuildOptions(str(tree)))
    assert "older configuration" not in cli("kernel", "list").out


def test_two_builds_of_one_name_do_not_collide(tree):
    with kernels.locked("mine"), pytest.raises(EngineError, match=r"kernel 'mine' is being built by another tcpscape"):
        building.build(BuildOptions(str(tree)))
    with kernels.locked("other"):
        assert building.build(BuildOptions(str(tree))).name == "mine"
    with (kernels.home() / ".mine.lock").open() as held:
        fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)


# Sources


def test_what_a_source_can_be(tmp_path, monkeypatch):
    monkeypatch.setattr(source, "INSTALLED", tmp_path)
    assert source.find(None) == source.KernelSource("debian", "linux-source-6.1", "6.1", None)
    (tmp_path / "linux-source-6.12.tar.xz").touch()
    assert source.find("6.12").path == tmp_path / "linux-source-6.12.tar.xz"
    files = {
        "linux-6.12.3.tar.xz": "6.12.3",
        "linux-source-6.1.tar.xz": "6.1",
        "net-next-main.tar.gz": "net-next-main",
        "linux-6.9-rc1.tgz": "6.9-rc1",
    }
    for file, name in files.items():
        (tmp_path / file).touch()
        assert source.find(str(tmp_path / file)).name == name
    fill(tmp_path / "x", {"f.zip": ""})
    for said, why in (("nosuch", "does not exist"), ("x/f.zip", "is no tarball"), ("x", "is no Linux kernel")):
        with pytest.raises(EngineError, match=why):
            source.find(str(tmp_path / said))


def test_without_apt_one_line_says_what_to_do(tmp_path, monkeypatch, cli):
    monkeypatch.setattr(source, "INSTALLED", tmp_path)
    monkeypatch.setattr(source.shutil, "which", lambda tool: None)
    got = cli("kernel", "build")
    assert got.status == 2
    assert "linux-source-6.1 is not in" in got.err
    assert "give --source a tarball from https://kernel.org or a tree" in got.err
    for name, package in (("6.12", "linux-source-6.12"), ("mine", "linux-source-6.1")):
        with pytest.raises(EngineError, match=f"{package} is not in"):
            building.build(BuildOptions(name=name))


@pytest.mark.parametrize("around", ["linux-9.9/", "./linux-9.9/", ""])
def test_a_tarball_becomes_a_kernel_without_what_is_not_needed(tree, tmp_path, cache, around):
    told = archive(tmp_path / "linux-9.9.tar.gz", TREE, around)
    kernel = building.build(BuildOptions(str(told)))
    assert (kernel.name, kernel.release, kernel.source, kernel.describe) == ("9.9", "6.1.7", str(told), None)
    assert len(kernel.source_digest) == 64
    there = cache / "9.9" / "src"
    assert (there / "net/ipv4/tcp_bbr.c").is_file()
    assert (there / "arch/arm/Kconfig").is_file()
    assert not (there / "arch/arm/kernel").exists()
    assert not (there / "drivers/gpu/drm/big.c").exists()
    again = building.build(BuildOptions(str(told)))
    assert again.created == kernel.created
    assert (cache / "9.9" / "build.log").read_text().count("unpacked") == 0


def test_another_tarball_under_the_name_starts_afresh(tree, tmp_path, cache):
    told = archive(tmp_path / "linux-9.9.tar.gz", TREE)
    building.build(BuildOptions(str(told)))
    archive(told, {**TREE, "net/ipv4/tcp_bbr.c": "newer"})
    building.build(BuildOptions(str(told)))
    assert b"newer" in (cache / "9.9" / "linux").read_bytes()
    with pytest.raises(EngineError, match=rf"kernel '9.9' is built from {told}, not from {tree}; give another --name"):
        building.build(BuildOptions(str(tree), name="9.9"))


@pytest.mark.parametrize("evil", ["../../escaped", "/escaped"])
def test_a_tarball_cannot_write_elsewhere(tree, tmp_path, cache, evil):
    path = archive(tmp_path / "linux-9.9.tar.gz", TREE)
    with tarfile.open(path, "w:gz") as tar:
        member = tarfile.TarInfo("linux-9.9/link")
        member.type, member.linkname = tarfile.SYMTYPE, evil
        tar.addfile(member)
    with pytest.raises(EngineError, match="source: cannot unpack"):
        building.build(BuildOptions(str(path)))
    assert not (cache / "9.9" / "src").exists()


def test_a_damaged_tarball_is_refused(tree, tmp_path):
    path = archive(tmp_path / "linux-9.9.tar.gz", {**TREE, "big": "".join(map(str, range(50_000)))})
    path.write_bytes(path.read_bytes()[:-40_000])
    with pytest.raises(EngineError, match="source: cannot unpack"):
        building.build(BuildOptions(str(path)))


# The directory of links

NEEDED = "net/ipv4/tcp.c arch/um/kernel/um_arch.c arch/x86/um/signal.c arch/Kconfig arch/arm/Kconfig Documentation/Kconfig drivers/gpu/drm/Kconfig.debug drivers/net/veth.c scripts/Makefile.build"
NOT_NEEDED = "arch/arm/kernel/head.S Documentation/x.rst drivers/gpu/drm/a.c tools/testing/a.c"


def test_only_what_is_needed():
    assert [name for name in NEEDED.split() if not source.is_needed(name)] == []
    assert [name for name in NOT_NEEDED.split() if source.is_needed(name)] == []


@pytest.mark.parametrize("git", [False, True])
def test_the_links_follow_the_tree(tmp_path, git):
    tree, there = fill(tmp_path / "t"), tmp_path / "f"
    if git:
        if shutil.which("git") is None:
            pytest.skip("git is missing")
        (tree / ".gitignore").write_text(
            ".*\n!.gitignore\n*.o\n*.a\n*.lex.c\n/vmlinux*\nvmlinux.lds\nmodules.order\n/include/config\n/include/generated/\n/arch/*/include/generated/\n"
        )
    fill(tree, dict.fromkeys(LEFT_BY_A_BUILD[:-1], ""))
    source.sync(tree, there)
    names = {str(p.relative_to(there)) for p in there.rglob("*") if p.is_symlink()}
    assert names.difference({".gitignore"}) == {name for name in TREE if source.is_needed(name)}
    assert (there / "net/ipv4/tcp_bbr.c").resolve() == tree / "net/ipv4/tcp_bbr.c"
    fill(tree, {"net/mptcp/deep/new.c": "x"})
    (tree / "net/sched/sch_netem.c").unlink()
    (tree / "net/sched/Makefile").unlink()
    assert source.sync(tree, there) == (1, 2)
    assert (there / "net/mptcp/deep/new.c").read_text() == "x"
    assert not (there / "net/sched").exists()
    assert source.sync(tree, there) == (0, 0)


def test_a_file_that_becomes_a_directory_and_back(tmp_path):
    tree, there = fill(tmp_path / "t"), tmp_path / "f"
    source.sync(tree, there)
    (tree / "net/sched/sch_netem.c").unlink()
    fill(tree, {"net/sched/sch_netem.c/part.c": ""})
    assert source.sync(tree, there) == (1, 1)
    shutil.rmtree(tree / "net/sched/sch_netem.c")
    fill(tree, {"net/sched/sch_netem.c": "file"})
    assert source.sync(tree, there) == (1, 1)
    assert (there / "net/sched/sch_netem.c").read_text() == "file"
    (tree / "scripts").mkdir()
    (tree / "scripts/headers").symlink_to("../include")
    source.sync(tree, there)
    assert os.readlink(there / "scripts/headers") == str(tree / "scripts/headers")


def test_a_repository_is_told_by_git_and_described(tmp_path):
    if shutil.which("git") is None:
        pytest.skip("git is missing")
    tree = fill(tmp_path / "t")
    (tree / ".gitignore").write_text("*.o\n")
    git = ("git", "-C", str(tree), "-c", "user.name=x", "-c", "user.email=x@example.org")
    for words in (("init", "-q"), ("add", "-A"), ("commit", "-qm", "x"), ("tag", "-am", "x", "v9.9")):
        subprocess.run((*git, *words), check=True)
    assert source.describe(tree) == "v9.9"
    fill(tree, {"net/ipv4/tcp_new.c": "", "net/ipv4/tcp_new.o": ""})
    (tree / "net/ipv4/tcp_ours.c").unlink()
    assert {"net/ipv4/tcp_new.c", "net/ipv4/tcp_bbr.c"} <= set(source.source_files(tree))
    assert not {"net/ipv4/tcp_new.o", "net/ipv4/tcp_ours.c"} & set(source.source_files(tree))
    assert source.describe(tree) == "v9.9-dirty"


def test_a_tree_that_was_built_in_place_is_not_touched(tree, cache):
    fill(tree, dict.fromkeys(LEFT_BY_A_BUILD, ""))
    before = picture(tree)
    for where, _, _ in os.walk(tree):
        os.chmod(where, 0o555)
    try:
        kernel = building.build(BuildOptions(str(tree)))
    finally:
        for where, _, _ in os.walk(tree):
            os.chmod(where, 0o755)
    assert picture(tree) == before
    assert kernel.source == str(tree)
    assert kernels.remove("mine") > 0
    assert picture(tree) == before


# Configuration


def test_every_congestion_control_of_the_sources_is_on_and_named(tree):
    kernel = building.build(BuildOptions(str(tree)))
    assert kernel.congestion_controls == ("bbr", "highspeed", "ours-1", "ours-2", "reno")
    assert {"netem", "pfifo_fast"} <= set(kernel.qdiscs)
    assert kernel.hz == 100


def test_a_source_that_lacks_what_trials_need_is_refused(tree):
    edit(tree / "Makefile", MAKEFILE.replace("-e UNKNOWN", "-e UNKNOWN -e TIME_TRAVEL -e NETEM"))
    with pytest.raises(EngineError, match=r"source: these sources do not take CONFIG_NET_SCH_NETEM, CONFIG_UML_TIME_TRAVEL_SUPPORT"):
        building.build(BuildOptions(str(tree)))


@pytest.mark.parametrize(("instead", "is_met"), [("CONFIG_PREEMPT_VOLUNTARY=y", True), ("CONFIG_PREEMPT=y", False)])
def test_a_kernel_that_cannot_do_without_preemption_has_the_mildest_one(tree, instead, is_met):
    edit(
        tree / "Makefile",
        MAKEFILE.replace("> $(O)/.config", f"> $(O)/.config; echo {instead} >> $(O)/.config").replace("-e UNKNOWN", "-e UNKNOWN -e PREEMPT_NONE"),
    )
    with nullcontext() if is_met else pytest.raises(EngineError, match="do not take CONFIG_PREEMPT_NONE"):
        building.build(BuildOptions(str(tree)))


def test_the_users_fragment_wins_and_is_remembered(tree, tmp_path, cache):
    mine = tmp_path / "my.config"
    mine.write_text("# faster ticks\n\nCONFIG_HZ=1000\n# CONFIG_TCP_CONG_OURS is not set\n")
    first = building.build(BuildOptions(str(tree), fragment=mine))
    assert first.hz == 1000
    assert "ours-1" not in first.congestion_controls
    mine.unlink()
    again = building.build(BuildOptions(name="mine"))
    assert (again.hz, again.config_digest) == (1000, first.config_digest)
    plain = building.build(BuildOptions(str(tree)))
    assert plain.hz == 100
    assert plain.config_digest != first.config_digest


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("CONFIG_UNKNOWN=y", r"config: did not take: CONFIG_UNKNOWN \(these sources have no such option\)"),
        ("CONFIG_TOGETHER=m\nCONFIG_UNKNOWN_TOO=y", "CONFIG_UNKNOWN_TOO"),
        ("HZ=1000", r"my.config:1: 'HZ=1000' is no option; write CONFIG_NAME=value"),
    ],
)
def test_options_that_do_not_take_are_named(tree, tmp_path, text, said):
    (tmp_path / "my.config").write_text(text)
    with pytest.raises(EngineError, match=said):
        building.build(BuildOptions(str(tree), fragment=tmp_path / "my.config"))


def test_the_fragment_has_what_trials_need():
    requested = config.requested(Path("/nosuch"), None)
    assert requested.options["HZ"] == "100"
    assert {"UML_TIME_TRAVEL_SUPPORT", "HOSTFS", "UML_SOUND", "VETH", "NET_NS", "NET_SCH_NETEM", "TCP_CONG_BBR"} <= requested.required
    assert "NET_SCH_DUALPI2" in requested.options
    assert "NET_SCH_DUALPI2" not in requested.required
    assert not {"TCP_MD5SIG", "SMP", "SLUB_DEBUG", "STATIC_LINK"} & set(requested.options)
    requested = config.RequestedConfig({"TOGETHER": "m"}, frozenset(), frozenset({"TOGETHER"}))
    with pytest.raises(EngineError, match=r"CONFIG_TOGETHER \(these"):
        config.check(requested, {}, Path("/nosuch"))


# Needs


def test_missing_tools_are_one_line_of_apt(monkeypatch):
    monkeypatch.undo()
    monkeypatch.setattr(building.shutil, "which", lambda tool: None if tool in ("gcc", "flex", "ld") else tool)
    with pytest.raises(EngineError) as e:
        building.check_tools()
    assert str(e.value) == "tools: missing: gcc, ld, flex; run `apt-get install gcc binutils flex libc6-dev`"
    monkeypatch.setattr(building.shutil, "which", lambda tool: tool)
    monkeypatch.setattr(building, "_has_headers", lambda: False)
    with pytest.raises(EngineError, match="run `apt-get install libc6-dev`"):
        building.check_tools()
    monkeypatch.setattr(building.platform, "machine", lambda: "aarch64")
    with pytest.raises(EngineError, match="needs Linux on x86_64, this is Linux on aarch64"):
        building.check_machine()


def test_too_little_disk_says_how_much(monkeypatch, tree, cache):
    monkeypatch.setattr(building.shutil, "disk_usage", lambda where: shutil._ntuple_diskusage(10, 5, 2**27))
    with pytest.raises(EngineError, match=r"disk: 0.1 GiB are free at .*, the build needs 0.3 GiB; make room, or set XDG_CACHE_HOME"):
        building.build(BuildOptions(str(tree)))
    assert not (cache / "mine").exists()


def test_make_takes_no_spaces(tree, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "a b"))
    with pytest.raises(EngineError, match="cache: make takes no spaces or colons"):
        building.build(BuildOptions(str(tree)))


def test_the_shells_variables_do_not_reach_the_kernel():
    ours = {"PATH": "/bin", "MAKEFLAGS": "-j9", "ARCH": "arm", "KBUILD_OUTPUT": "/x", "O": "/y", "HOME": "/h", "LOCALVERSION": "-x"}
    kept = building.make_environment(ours)
    assert {"PATH", "HOME", "KBUILD_BUILD_TIMESTAMP"} <= set(kept)
    assert not {"MAKEFLAGS", "ARCH", "KBUILD_OUTPUT", "O"} & set(kept)
    assert kept["LOCALVERSION"] == ""


# Builds


class RecordedProgress(BuildProgress):
    """Remembers the stages and the last count."""

    def __init__(self):
        self.stages, self.last = [], 0

    def stage(self, name, total=None):
        self.stages.append((name, total))

    def done(self, amount):
        self.last = amount


def test_a_rebuild_does_only_what_changed(tree, cache):
    progress = RecordedProgress()
    first = building.build(BuildOptions(str(tree)), progress)
    assert progress.stages == [("linking the sources", None), ("configuring", None), ("compiling", building.LINES)]
    assert progress.last >= 4
    edit(tree / "net/ipv4/tcp_bbr.c", 'struct ops bbr = {.name = "bbr2"}; tcp_register_congestion_control(&bbr);\n')
    second = building.build(BuildOptions(str(tree)))
    log = (cache / "mine" / "build.log").read_text()
    assert log.count("  CC ") == 1
    assert "CC      net/ipv4/tcp_bbr.c" in log
    assert (cache / "mine/build/configured").read_text() == "once\n"
    assert (second.created, second.config_digest) == (first.created, first.config_digest)
    assert second.digest != first.digest
    assert "bbr2" in second.congestion_controls
    third = building.build(BuildOptions(str(tree)))
    assert third.digest == second.digest
    building.build(BuildOptions(str(tree)))
    edit(tree / "net/ipv4/Kconfig", TREE["net/ipv4/Kconfig"] + "config TCP_CONG_FRESH\n")
    building.build(BuildOptions(str(tree)))
    assert (cache / "mine/build/configured").read_text() == "once\nonce\n"
    assert "CONFIG_TCP_CONG_FRESH=y" in (cache / "mine/build/.config").read_text()


def test_a_failed_build_says_the_first_error_and_the_log(tree, cache, cli):
    kept = building.build(BuildOptions(str(tree)))
    edit(tree / "net/ipv4/tcp_ours.c", "BROKEN")
    got = cli("kernel", "build", "--source", tree)
    assert got.status == 2
    assert f"error: kernel: the build failed: {tree}/net/ipv4/tcp_ours.c:3:1: error: expected ;" in got.err
    assert str(cache / "mine" / "build.log") in got.err
    assert kernels.find("mine") == kept
    edit(tree / "net/ipv4/tcp_ours.c", "mended")
    assert cli("kernel", "build", "--source", tree).status == 0


def test_an_interrupted_build_goes_on(tree, cache, cli, monkeypatch):
    def stop(self, line):
        if "CC" in line:
            raise KeyboardInterrupt

    monkeypatch.setattr("tcpscape.cli.kernel._Bar.say", stop)
    got = cli("kernel", "build", "--source", tree)
    assert (got.status, got.err) == (130, "interrupted; the same command goes on from here\n")
    assert "not finished" in cli("kernel", "list").out
    monkeypatch.undo()
    monkeypatch.setenv("XDG_CACHE_HOME", str(cache.parent.parent))
    monkeypatch.setattr(building, "check_tools", lambda: None)
    monkeypatch.setattr(building, "compiler_version", lambda: "cc 1")
    assert cli("kernel", "build", "--name", "mine").status == 0
    assert (cache / "mine/build/configured").read_text() == "once\n"


def test_list_says_how_near_the_models_profiles_are(cli, cache, monkeypatch):
    page = (Path(__file__).parents[2] / "docs" / "kernels.md").read_text()
    for name, c in profiles.COMPARED.items():
        median, p90 = (f"{100 * a:.1f} % ({100 * b:.1f} %)" for a, b in ((c.median, c.chance_median), (c.p90, c.chance_p90)))
        assert f"| {name} | Linux {c.release} | {median} | {p90} |" in page
    assert set(profiles.COMPARED) <= set(_core.kernel_profiles())
    for release, profile in (
        ("6.5.13", "6.1"),
        ("6.6.30", "6.6"),
        ("6.12.9-generic", "6.12"),
        ("6.18.44", "6.18"),
        ("6.19.3", "6.19"),
        ("7.1.5", "7.1"),
        ("7.2.0", "7.1"),
        ("5.10.1", "6.1"),
    ):
        monkeypatch.setattr("platform.release", lambda release=release: release)
        told = [line.split() for line in cli("kernel", "list").out.splitlines() if line.rstrip().endswith(release)]
        assert [line[0] for line in told] == [profile]
        assert told[0][1] == profiles.COMPARED[profile].release


def test_list_info_and_remove(tree, cache, cli):
    got = cli("kernel", "build", "--source", tree, "--name", "one")
    assert got.status == 0
    assert got.out.startswith("kernel one: Linux 6.1.7, ")
    cli("kernel", "build", "--source", tree, "--name", "two")
    listed = cli("kernel", "list").out
    assert all(word in listed for word in ("one", "two", "6.1.7", "HZ", str(tree)))
    told = cli("kernel", "info", "two").out
    assert all(word in told for word in ("digest", "congestion controls", "bbr, highspeed", "compiler", str(cache / "two" / "linux")))
    got = cli("kernel", "remove", "three")
    assert (got.status, got.err) == (2, "error: name: no kernel 'three'; there are one, two\n")
    assert cli("kernel", "remove", "one").out.startswith("removed one: ")
    assert not (cache / "one").exists()
    assert [kernel.name for kernel in kernels.built_kernels()] == ["two"]


@pytest.mark.slow
def test_debians_kernel_builds_and_starts(tmp_path):
    try:
        building.check_machine(), building.check_tools()
    except EngineError as e:
        pytest.skip(str(e))
    built = [each for each in kernels.built_kernels() if (each.name, each.recipe) == ("6.1", config.recipe())]
    kernel = built[0] if built else building.build(BuildOptions(name="6.1"))
    assert kernel.release.startswith("6.1.")
    assert {"cubic", "bbr", "reno", "dctcp", "vegas", "highspeed"} <= set(kernel.congestion_controls)
    assert {"netem", "tbf", "fq_codel", "cake", "pie", "red", "htb", "fq"} <= set(kernel.qdiscs)
    said = subprocess.run((kernel.path, "--version"), capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    assert said.stdout.strip() == kernel.release
    assert "time-travel" in subprocess.run((kernel.path, "--help"), capture_output=True, text=True, timeout=PATIENCE_S, check=False).stdout

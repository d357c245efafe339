"""Values that nobody should write, and the quantities and words that they are made of."""

from hypothesis import strategies as st

MARKUP = (
    "[/x]",
    "[bold]x",
    "[red",
    "$\\foo$",
    "$x^{$",
    "_$",
    '"><img src=x onerror=alert(1)>',
    "<script>alert(1)</script>",
    "&lt;",
    "{{ 7*7 }}",
    "{% x %}",
)
"""What rich, mathtext, HTML and Jinja would interpret."""
CONTROL = (
    "\x1b[31mred\x1b[0m",
    "a\nb",
    "\r",
    "\t",
    "\x07",
    "\x7f",
    "\x9b31m",
    "\u202e",
    "\ufeff",
    "a\u0301",
    "\udcff",
    "\u2028",
    "x\ntouch PWNED\n#",
)
"""Control characters, directions, a byte order mark, what is no UTF-8."""
SHELL = ("$(touch PWNED)", "`touch PWNED`", "; touch PWNED", "' ; touch PWNED ; '", "| touch PWNED", "&& touch PWNED", "~", "*", "$HOME")
PATHS = (
    "..",
    ".",
    "/",
    "../../x",
    "/../../x",
    "/etc/passwd",
    "/dev/zero",
    "/dev/null",
    "/dev/full",
    "/proc/self/mem",
    "no/such/file",
    "a" * 300,
    "CON",
    "-",
    "x/",
    "/dev/tty",
    "/root/x",
    "/proc/x",
    "//x",
)
NUMBERS = (
    "0",
    "-0",
    "-1",
    "1",
    "2.5",
    "1e3",
    "1e-30",
    "1e9",
    "1e18",
    "1e300",
    "1e400",
    "-1e400",
    "9" * 25,
    "9" * 400,
    "9" * 5000,
    "0." + "0" * 5000 + "1",
    "nan",
    "NaN",
    "inf",
    "-inf",
    "infinity",
    "٣",
    "３",
    "½",
    "²",
    "1,5",
    "1_000",
    "0x10",
    "0x_",
    "1__0",
    "+5",
    "1e",
    "1e+",
    ".",
    "1.2.3",
    "",
    "- 1",
    "1 000",
    "१२",
    "0b1",
    "0o7",
    "1j",
    "18446744073709551615",
    "18446744073709551616",
    "9223372036854775807",
    "9223372036854775808",
    "4294967296",
    "2147483648",
    "1.7976931348623157e308",
    "5e-324",
)
UNITS = (
    "",
    "ms",
    "s",
    "us",
    "µs",
    "ns",
    "m",
    "h",
    "d",
    "mbit",
    "Mbit/s",
    "kbit",
    "gbit",
    "tbit",
    "bps",
    "bit",
    "B",
    "KB",
    "KiB",
    "MiB",
    "TiB",
    "EiB",
    "MB/s",
    "%",
    "pct",
    "bdp",
    "parsec",
    "msec",
    " ms",
    "ms ms",
    "MS",
    "p",
    "٪",
)
WORDS = (
    "",
    " ",
    "-",
    "--",
    "---",
    "None",
    "null",
    "true",
    "false",
    "no",
    "[]",
    "{}",
    "{",
    "}",
    "[",
    "]",
    "!",
    "'",
    '"',
    "\\",
    "=",
    "a=",
    "=b",
    "a=b",
    "a=b=c",
    ",",
    ",,",
    "a,,b",
    "|",
    "||",
    ":",
    "::",
    "a:b",
    ":b",
    "a:",
    ";",
    "/",
    "@",
    "@1s",
    "*",
    "*2",
    "%",
    "%s",
    "%n",
    "{0}",
    "${rtt}",
    "${",
    "$",
    "all",
    "cubic",
    "cubic,cubic",
    "netem",
    "model",
    "mock",
    "virtual",
    "virtual:",
    "virtual:x",
    "live",
    "dask://x:1",
    "dask://127.0.0.1:1",
    "dask://",
    "default",
    "median",
    "goodput",
    "goodput > 1",
    "nosuch",
    "é",
    "日本",
    "x" * 100_000,
    "1," * 5_000,
    "(" * 5_000,
    "🦆",
)
RANGES = (
    "1..1e300ms/x1.0000001",
    "0..1ms/1ns",
    "0..24ms/0",
    "0..24ms/-4ms",
    "24..0ms/4ms",
    "0..24ms/x2",
    "1..4/x1",
    "1..4/x0",
    "1..4/x-2",
    "1..nan/1",
    "1..inf/1",
    "1..2/nan",
    "..",
    "1..",
    "..1",
    "1../",
    "1..2/",
    "/",
    "0..1e300/1",
    "1..2ms/4mbit",
    "1ms..1s/1%",
    "0..1000000000",
    "5..3",
    "1,1",
    "1,1.0",
    "0,0ms",
    "1,2,",
    ",1",
    "1..3,2",
    "0..1e9/1",
    "1000000001",
    "20000000",
    "5/0",
    "0/5",
    "3/3/3",
    "20/3",
    "-1..3",
    "1.5",
    "٣..٥",
    "1..1e9",
    "1,2ms,3mbit",
    "a..b/c",
    "0..100%/0.00001%",
    "-5..5ms/1ms",
    "1:2",
    "50ms:0.5,20ms:0.5",
    "50ms:-1",
    "50ms:nan",
    "50ms:",
)
TEXTS = (*WORDS, *MARKUP, *CONTROL, *SHELL, *PATHS, *RANGES)


def texts() -> st.SearchStrategy[str]:
    """Texts without a NUL, which no command line can have."""
    free = st.text(st.characters(blacklist_characters="\0", blacklist_categories=("Cs",)), max_size=12)
    return st.one_of(st.sampled_from(TEXTS), quantities(), quantities(), free)


def quantities() -> st.SearchStrategy[str]:
    """Numbers with units, most of them wrong."""
    return st.builds(lambda number, unit: number + unit, st.sampled_from(NUMBERS), st.sampled_from(UNITS))


TC = (
    "netem delay 5ms 2ms distribution normal loss 0.5%",
    "netem delay 5ms rate 10mbit limit 100",
    "netem loss gemodel 1% 10% 70% 0.1%",
    "netem delay 5ms reorder 25% 50% gap 5",
    "netem duplicate 1% corrupt 0.1%",
    "netem slot 1ms 2ms packets 5",
    "tbf rate 10mbit burst 6056 limit 62500",
    "htb rate 10mbit ceil 20mbit",
    "pfifo limit 100",
    "bfifo limit 15000",
    "red limit 100000 min 6000 max 18000 avpkt 1000 probability 0.1 ecn",
    "codel limit 100 ecn target 5ms interval 100ms",
    "fq_codel limit 100 flows 64 quantum 1514",
    "pie limit 100 ecn",
    "fq_pie limit 100",
    "cake bandwidth 20mbit besteffort rtt 50ms",
    "dualpi2 limit 100",
    "fq maxrate 10mbit",
    "sfq perturb 10",
    "choke limit 100 bandwidth 10mbit ecn",
    "jitter delay 5ms 2ms distribution normal order clamp",
    "tbf rate 10mbit burst 6056 limit 62500 child fq_codel",
    "netem delay 5ms child pfifo limit 10",
    "pfifo_head_drop limit 100",
)
"""Words of tc that are good."""


@st.composite
def tc_words(draw: st.DrawFn) -> str:
    """Words of tc with tokens left out, doubled, exchanged or replaced; a third of them as they are."""
    words = draw(st.sampled_from(TC)).split()
    for _ in range(draw(st.integers(0, 2))):
        at = draw(st.integers(0, len(words) - 1)) if words else 0
        match draw(st.sampled_from(("number", "number", "drop", "double", "token", "other", "truncate"))):
            case "number":
                words[at : at + 1] = [draw(quantities())]
            case "drop":
                del words[at : at + 1]
            case "double":
                words[at:at] = words[at : at + 2]
            case "token":
                words[at:at] = [draw(st.sampled_from(TEXTS))]
            case "other":
                words += draw(st.sampled_from(TC)).split()
            case "truncate":
                words = words[:at]
    return " ".join(words)


CCAS = ("cubic", "reno", "bbr", "bbr3", "dctcp", "prague", "vegas", "westwood", "cubic:hystart=off", "illinois")
MIXES = ("cubic*2,bbr", "cubic@100ms-200ms,bbr", "cubic*1@50ms", "cubic*2~rtt=30ms,bbr~up", "reno*3~rtt=20ms..80ms~access=20mbit")


ODD_LABELS = ("all", "", "nosuch", "cubic:", "cubic:x=1", "bbr:=", "cubic:hystart", "mine.py:Mine", "no.py:X", "mine.py:")
TAILS = (
    "",
    "",
    "",
    "*0",
    "*-1",
    "*٣",
    "*1e9",
    "*20000000",
    "@",
    "@-1s",
    "@1s-0s",
    "@nan",
    "*2*2",
    "@1s@2s",
    ":a=b",
    "\n",
    "[/x]",
    "\x1b[31m",
    "~",
    "~up~down",
    "~rtt=",
    "~rtt=1ns",
    "~rtt=5ms..1ms",
    "~rtt=1ms..9ms",
    "~enter=r9",
    "~access=x",
    "~x=1",
    "*999999999~rtt=1s..2s",
)


def labels() -> st.SearchStrategy[str]:
    """Congestion controls with parameters, counts and times, as in --cca and --mix."""
    parts = st.lists(st.sampled_from((*CCAS, *MIXES, *ODD_LABELS)), min_size=1, max_size=4)
    return st.builds("{}{}".format, parts.map(",".join), st.sampled_from(TAILS))


def traffic() -> st.SearchStrategy[str]:
    """Probes and transfers, good and bad."""
    heads = ("voice", "ping", "udp_ping", "udp", "nosuch", "", "20/s,30kB", "5/s", "0/s,1B", "1e9/s,1kB", "nan/s", "20/s,30kB,1", "/s,", "20,30kB")
    tails = (
        "",
        "",
        "~up",
        "~up~up",
        "~interval=50ms",
        "~interval=1ns",
        "~size=1B",
        "~size=1MB",
        "~name=../x",
        "~cca=bbr",
        "~shape=nan",
        "~most=1B",
        "~rtt=1s",
        "~enter=r1",
        "@1s-0s",
        "@9h",
        "~",
        "~\x1b[31m",
    )
    return st.one_of(st.builds("{}{}".format, st.sampled_from(heads), st.sampled_from(tails)), st.sampled_from(TEXTS))


def links() -> st.SearchStrategy[str]:
    words = (
        "delay 2ms",
        "rate 20mbit",
        "rate",
        "queue fq_codel limit 100",
        "buffer 1bdp",
        "buffer 9999bdp",
        "loss 1%",
        "jitter 1ms",
        "name core",
        "name forward",
        "speed 3",
        "delay 1ms delay 2ms",
        "",
    )
    return st.one_of(
        st.lists(st.sampled_from(words), min_size=1, max_size=3).map(" ".join), st.builds("delay {}".format, quantities()), st.sampled_from(TEXTS)
    )


METRICS = ("goodput", "goodput_mbps.median", "rtt_p95", "retransmits", "added_rtt", "share:bbr", "queue_max", "ratio", "median", "bitrate", "nosuch")


def checks() -> st.SearchStrategy[str]:
    chosen = (
        "",
        "",
        "[cca=bbr]",
        "[cca=bbr over cubic]",
        "[",
        "[]",
        "[x=]",
        "[cca=nosuch]",
        "[cca=[/x]]",
        ".p95",
        ".p٩٥",
        ".p0",
        ".p101",
        ".low",
        ".cv",
        ".n",
        ".nosuch",
    )
    ops = (">", "<", ">=", "==", "!=", "=", "<>", "", "><", " over ")
    return st.builds(
        "{}{} {} {}".format, st.sampled_from(METRICS), st.sampled_from(chosen), st.sampled_from(ops), st.one_of(quantities(), st.sampled_from(TEXTS))
    )


def changes() -> st.SearchStrategy[str]:
    where = ("bottleneck", "forward", "reverse", "nowhere", "", "forward.1", "forward.99", "bottleneck.0.1")
    fields = ("rate", "delay", "loss", "limit", "outage", "jitter", "burst", "quantum", "", "rate 5mbit rate", "delay 5ms rate")
    return st.builds("{}@{}: {} {}".format, st.sampled_from(where), quantities(), st.sampled_from(fields), quantities())


def axis() -> st.SearchStrategy[str]:
    names = (
        "rtt",
        "bottleneck.buffer",
        "forward.delay",
        "kernel",
        "kernel.hz",
        "seeds",
        "name",
        "flow.count",
        "flows",
        "duration",
        "cca",
        "x",
        "",
        "a.b.c",
        "__class__",
        "flow.cca",
        "changes",
    )
    return st.builds("{}={}".format, st.sampled_from(names), st.one_of(st.sampled_from(RANGES), quantities(), st.sampled_from(TEXTS)))

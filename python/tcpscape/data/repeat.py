"""Repeats the trials of this bundle and compares what each carried with `trials.json`; exit status 1 unless all are the same."""

import hashlib
import json
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent


def main() -> int:
    """Compares digests, runs every trial again, prints how many are the same."""
    for line in (HERE / "SHA256SUMS").read_text("utf-8").splitlines():
        digest, name = line.split("  ", 1)
        if hashlib.sha256((HERE / name).read_bytes()).hexdigest() != digest:
            print(f"{name} is not what it was: unpack the archive again", file=sys.stderr)
            return 2
    bundle = json.loads((HERE / "trials.json").read_text("utf-8"))
    try:
        from tcpscape import engines
        from tcpscape.campaign.execute import Runner
        from tcpscape.errors import TcpscapeError
        from tcpscape.scenario.scenario import Scenario
    except ImportError:
        print(f"tcpscape is not installed: pip install tcpscape=={bundle['tcpscape']}", file=sys.stderr)
        return 2
    same, differing = 0, 0
    for item in bundle["work"]:
        try:
            engine = engines.make(item["engine"])
            trials = Runner(engine).run(Scenario.of(item["scenario"], "trials.json"), item["seeds"])
        except TcpscapeError as e:
            print(e, file=sys.stderr)
            return 2
        for trial, goodput, digest in zip(trials, item["goodput_mbps"], item["hash"], strict=True):
            if trial.goodput_mbps == goodput and trial.hash == digest:
                same += 1
                continue
            differing += 1
            other = "" if trial.version == item["version"] else f" (version {trial.version}, there {item['version']})"
            print(f"{trial.scenario}, {trial.cca}, seed {trial.seed}: {trial.goodput_mbps:.6g} Mbit/s, there {goodput:.6g}{other}")
    print(f"{same} of {same + differing} trials are the same")
    return 1 if differing else 0


if __name__ == "__main__":
    sys.exit(main())

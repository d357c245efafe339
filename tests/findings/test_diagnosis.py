"""The table of indicators in a report: zones by the path's words, signatures and video by what the runs did."""

from tcpscape.campaign import execute
from tcpscape.campaign.campaign import Campaign
from tcpscape.report import tables


def test_cells_are_diagnosed(need_model):
    said = {
        "conditions": {"rtt": "50ms", "distribution": "normal", "duration": "5s", "flow": {"rcvbuf": "128KiB", "app": "10MiB/s"}},
        "zip": [
            {
                "path": ["good", "slow reader", "jitter", "loss"],
                "jitter": "0ms,0ms,12ms,0ms",
                "read": ["64KiB", "8KiB/20ms", "64KiB", "64KiB"],
                "loss": "0,0,0,3%",
            }
        ],
        "cca": "cubic",
        "seeds": 5,
    }
    (table,) = tables.indicator_table("", execute.run(Campaign.of(said)))
    rows = {row[1].text: dict(zip(table.columns, row, strict=True)) for row in table.rows}
    assert [rows[p]["jitter / RTT"].text for p in rows] == ["", "", "24 %, published as chaos zone", ""]
    assert rows["good"]["the published rule says"].text == "neither"
    assert rows["loss"]["the published rule says"].text == "network"
    assert rows["slow reader"]["receive window"].text == "shrunk window"
    assert float(rows["slow reader"]["time held by the receive window, %"].text) > 90
    assert rows["good"]["video each flow carries"].text in ("1440p", "2160p")
    assert rows["loss"]["video each flow carries"].text in ("360p", "480p")
    runs = {p: int(rows[p]["runs for a mean to ± 5 %"].text) for p in rows}
    assert runs["good"] == 2
    assert runs["jitter"] > 20


def test_many_cells_are_not(need_model):
    said = {"conditions": {"rtt": "50ms"}, "axes": {"jitter": "0..20.1ms/0.1ms"}, "cca": "cubic", "engines": ["mock"], "seeds": 1}
    assert tables.indicator_table("", execute.run(Campaign.of(said))) == []

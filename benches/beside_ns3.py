"""Bulk flows over a bottleneck in ns-3, for `beside.py`: CONTROL MBIT SECONDS FLOWS; prints CPU seconds and the bytes that were received.

It needs ns-3's package from PyPI and is run by the Python that has it.
"""

import sys
import time

from ns import ns  # type: ignore[import-not-found]

RECEIVED = """
#include "ns3/applications-module.h"
uint64_t received(ns3::ApplicationContainer all) {
    uint64_t n = 0;
    for (uint32_t i = 0; i < all.GetN(); i++) n += ns3::DynamicCast<ns3::PacketSink>(all.Get(i))->GetTotalRx();
    return n;
}
"""


def link(mbit: float, queue: str):
    """A link of 12.5 ms at a rate, with a queue in its devices."""
    helper = ns.PointToPointHelper()
    helper.SetDeviceAttribute("DataRate", ns.StringValue(f"{mbit:g}Mbps"))
    helper.SetChannelAttribute("Delay", ns.StringValue("12500us"))
    helper.SetQueue("ns3::DropTailQueue", "MaxSize", ns.QueueSizeValue(ns.QueueSize(queue)))
    return helper


def main(control: str, mbit: float, seconds: float, flows: int) -> None:
    """The run."""
    ns.cppyy.cppdef(RECEIVED)
    ns.Config.SetDefault("ns3::TcpL4Protocol::SocketType", ns.StringValue("ns3::Tcp" + control.capitalize()))
    ns.Config.SetDefault("ns3::TcpSocket::SegmentSize", ns.UintegerValue(1448))
    for buffer in ("SndBufSize", "RcvBufSize"):
        ns.Config.SetDefault("ns3::TcpSocket::" + buffer, ns.UintegerValue(1 << 28))
    nodes = ns.NodeContainer()
    nodes.Create(3)
    first = link(100 * mbit, "1000000p").Install(nodes.Get(0), nodes.Get(1))
    narrow = link(mbit, f"{int(mbit * 125 * 50)}B").Install(nodes.Get(1), nodes.Get(2))
    ns.InternetStackHelper().Install(nodes)
    address = ns.Ipv4AddressHelper()
    address.SetBase(ns.Ipv4Address("10.0.0.0"), ns.Ipv4Mask("255.255.255.0"))
    address.Assign(first)
    address.SetBase(ns.Ipv4Address("10.0.1.0"), ns.Ipv4Mask("255.255.255.0"))
    ends = address.Assign(narrow)
    ns.Ipv4GlobalRoutingHelper.PopulateRoutingTables()
    for devices in (first, narrow):
        ns.TrafficControlHelper().Uninstall(devices)  # the devices' queues are the only ones
    sinks = ns.ApplicationContainer()
    for port in range(5000, 5000 + flows):
        here = ns.InetSocketAddress(ns.Ipv4Address.GetAny(), port).ConvertTo()
        there = ns.InetSocketAddress(ends.GetAddress(1), port).ConvertTo()
        sinks.Add(ns.PacketSinkHelper("ns3::TcpSocketFactory", here).Install(nodes.Get(2)))
        ns.BulkSendHelper("ns3::TcpSocketFactory", there).Install(nodes.Get(0)).Start(ns.Seconds(0))
    ns.Simulator.Stop(ns.Seconds(seconds))
    began = time.process_time()
    ns.Simulator.Run()
    print(time.process_time() - began, ns.cppyy.gbl.received(sinks))


if __name__ == "__main__":
    main(sys.argv[1], float(sys.argv[2]), float(sys.argv[3]), int(sys.argv[4]))

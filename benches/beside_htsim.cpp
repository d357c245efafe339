// Bulk flows over a bottleneck in htsim, for beside.py: MBIT SECONDS FLOWS; prints CPU seconds and the bytes that were received.
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <iostream>
#include <vector>

#include "config.h"
#include "eventlist.h"
#include "network.h"
#include "pipe.h"
#include "queue.h"
#include "tcp.h"

int main(int argc, char **argv) {
    if (argc != 4) return 2;
    const double mbit = atof(argv[1]), seconds = atof(argv[2]);
    const int flows = atoi(argv[3]);
    std::cout.setstate(std::ios_base::failbit);
    EventList events;
    events.setEndtime(timeFromSec(seconds));
    Packet::set_packet_size(1500);
    Pipe there(timeFromMs(25.0), events), back(timeFromMs(25.0), events);
    Queue bottleneck(speedFromMbps(mbit), (mem_b)(mbit * 125 * 50), events, NULL);
    TcpRtxTimerScanner timers(timeFromMs(10.0), events);
    std::vector<TcpSink *> sinks;
    for (int i = 0; i < flows; i++) {
        TcpSrc *source = new TcpSrc(NULL, NULL, events);
        TcpSink *sink = new TcpSink();
        source->set_flowsize(1ull << 50);
        timers.registerTcp(*source);
        route_t *out = new route_t(), *in = new route_t();
        out->push_back(&bottleneck);
        out->push_back(&there);
        out->push_back(sink);
        in->push_back(&back);
        in->push_back(source);
        source->connect(*out, *in, *sink, timeFromMs(1.0) * i / flows);
        sinks.push_back(sink);
    }
    const clock_t began = clock();
    while (events.doNextEvent()) {
    }
    const double taken = double(clock() - began) / CLOCKS_PER_SEC;
    double received = 0;
    for (TcpSink *sink : sinks) received += sink->cumulative_ack();
    received *= 1448.0 / 1500;  // its packets are all payload: as many with headers carry this
    printf("%f %.0f\n", taken, received);
}

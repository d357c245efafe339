/* A control that listens to delay: it keeps a few packets of its own in the queue, as Vegas does (Brakmo and Peterson 1995).
 *
 * The same algorithm as examples/python/delay.py. tests/controls/test_cca_load.py holds the two against each other.
 *
 *     clang -O2 -g -target bpf -c delay.bpf.c -o delay.bpf.o
 *     sudo tcpscape cca load delay.bpf.o -- tcpscape run --rtt 40ms --rate 20mbit --buffer 4bdp --cca tcpscape_delay,reno --engine live
 *
 * Sources and what is needed: as for aimd.bpf.c.
 */

typedef unsigned int u32;
typedef unsigned long long u64;

#define SEC(name) __attribute__((section(name), used))

#ifndef NAME
#define NAME "tcpscape_delay"
#endif

/* Packets in the queue below which the window grows, and above which it shrinks. */
#define FEW 4
#define MANY 8

char _license[] SEC("license") = "Dual MIT/GPL";

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct sock {
	int sk_sndbuf; /* bytes; not used, but libbpf compares whole types */
};

struct minmax_sample {
	u32 t;
	u32 v;
};

struct minmax {
	struct minmax_sample s[3];
};

struct tcp_sock {
	u32 snd_cwnd;     /* packets */
	u32 snd_cwnd_cnt; /* packets acknowledged towards the next change */
	u32 snd_ssthresh; /* packets */
	u32 srtt_us;      /* eighths of a µs */
	struct minmax rtt_min; /* µs; its first sample is the least */
};

#pragma clang attribute pop

struct tcp_congestion_ops {
	u32 (*ssthresh)(struct sock *sk);
	void (*cong_avoid)(struct sock *sk, u32 ack, u32 acked);
	u32 (*undo_cwnd)(struct sock *sk);
	char name[16];
};

/* One more packet for each that was acknowledged in slow start, then one a window. Nothing where the window is not what limits. */
extern void tcp_reno_cong_avoid(struct sock *sk, u32 ack, u32 acked) SEC(".ksyms");
/* Half of the window. */
extern u32 tcp_reno_ssthresh(struct sock *sk) SEC(".ksyms");
/* The window from before a reduction that was a mistake. */
extern u32 tcp_reno_undo_cwnd(struct sock *sk) SEC(".ksyms");

/* def ssthresh(self, sample, window): the Python class has none, so Reno's */
SEC("struct_ops/ssthresh")
u32 ssthresh(u64 *arguments)
{
	return tcp_reno_ssthresh((struct sock *)arguments[0]);
}

/* def give_back(self, sample, window) */
static void give_back(struct tcp_sock *tp, u32 acked)
{
	u32 count = tp->snd_cwnd_cnt + acked;

	if (count >= tp->snd_cwnd) {
		count = 0;
		tp->snd_cwnd = tp->snd_cwnd > 3 ? tp->snd_cwnd - 1 : 2;
	}
	tp->snd_cwnd_cnt = count;
}

/* def on_ack(self, sample, window), where sample.may_raise */
SEC("struct_ops/cong_avoid")
int cong_avoid(u64 *arguments)
{
	struct tcp_sock *tp = (struct tcp_sock *)arguments[0];
	u64 srtt = tp->srtt_us, least = 8ULL * tp->rtt_min.s[0].v, waiting;

	if (!srtt || !least)
		return 0;
	waiting = srtt > least ? (srtt - least) * tp->snd_cwnd : 0; /* packets in the queue × srtt */
	if (tp->snd_cwnd < tp->snd_ssthresh && waiting > FEW * srtt)
		tp->snd_ssthresh = tp->snd_cwnd;
	if (waiting > MANY * srtt)
		give_back(tp, arguments[2]);
	else if (waiting < FEW * srtt)
		tcp_reno_cong_avoid((struct sock *)arguments[0], arguments[1], arguments[2]);
	return 0;
}

/* def undo(self, sample, window): the Python class has none, so Reno's */
SEC("struct_ops/undo_cwnd")
u32 undo_cwnd(u64 *arguments)
{
	return tcp_reno_undo_cwnd((struct sock *)arguments[0]);
}

SEC(".struct_ops")
struct tcp_congestion_ops delay = {
	.ssthresh = (void *)ssthresh,
	.cong_avoid = (void *)cong_avoid,
	.undo_cwnd = (void *)undo_cwnd,
	.name = NAME,
};

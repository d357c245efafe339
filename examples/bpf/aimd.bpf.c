/* AIMD(1, 0.8) with an eye on delay: a congestion control of one's own in the kernel, without building a kernel.
 *
 * The same algorithm, hook by hook, as examples/python/aimd.py. tests/controls/test_cca_load.py holds the two against each other.
 *
 *     clang -O2 -g -target bpf -c aimd.bpf.c -o aimd.bpf.o
 *     sudo tcpscape cca load aimd.bpf.o -- tcpscape run --rtt 40ms --rate 20mbit --cca tcpscape_aimd,reno --engine live
 *
 * Source: Documentation/bpf/ of Linux (kfuncs, CO-RE), bpftool-struct_ops(8), and the kernel's own types as bpftool prints them
 * (bpftool btf dump file /sys/kernel/btf/vmlinux). No header of libbpf is needed.
 */

typedef unsigned int u32;
typedef unsigned long long u64;

#define SEC(name) __attribute__((section(name), used))

#ifndef NAME
#define NAME "tcpscape_aimd"
#endif

/* What is left of the window after a loss: four fifths. */
#define BETA_NUMERATOR 4
#define BETA_DENOMINATOR 5
/* Slow start ends when the RTT is more than five quarters of its minimum. */
#define LEAVE_NUMERATOR 5
#define LEAVE_DENOMINATOR 4

/* The kernel takes a control that calls its functions under a licence compatible with the GPL alone. */
char _license[] SEC("license") = "Dual MIT/GPL";

/* ---- the kernel's types: the members that are used; their places are looked up by name when the object is loaded ---- */
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
	u32 snd_ssthresh; /* packets */
	struct minmax rtt_min; /* µs; its first sample is the least */
};

struct ack_sample {
	u32 pkts_acked;
	int rtt_us; /* negative where every packet acknowledged had been retransmitted */
	u32 in_flight;
};

#pragma clang attribute pop

/* The members that are set; each is found in the kernel's structure by its name. */
struct tcp_congestion_ops {
	u32 (*ssthresh)(struct sock *sk);
	void (*cong_avoid)(struct sock *sk, u32 ack, u32 acked);
	void (*pkts_acked)(struct sock *sk, const struct ack_sample *sample);
	u32 (*undo_cwnd)(struct sock *sk);
	char name[16];
};

/* ---- functions of the kernel that a control in BPF may call ---- */

/* One more packet for each that was acknowledged in slow start, then one a window. Nothing where the window is not what limits. */
extern void tcp_reno_cong_avoid(struct sock *sk, u32 ack, u32 acked) SEC(".ksyms");
/* The window from before a reduction that was a mistake. */
extern u32 tcp_reno_undo_cwnd(struct sock *sk) SEC(".ksyms");

/* ---- the control; a hook's arguments come as an array of 64-bit words ---- */

static struct tcp_sock *connection(u64 *arguments)
{
	return (struct tcp_sock *)arguments[0];
}

/* def ssthresh(self, sample, window) */
SEC("struct_ops/ssthresh")
u32 ssthresh(u64 *arguments)
{
	u32 left = (u64)connection(arguments)->snd_cwnd * BETA_NUMERATOR / BETA_DENOMINATOR;

	return left > 2 ? left : 2;
}

/* def pkts_acked(self, sample, window) */
SEC("struct_ops/pkts_acked")
int pkts_acked(u64 *arguments)
{
	struct tcp_sock *tp = connection(arguments);
	const struct ack_sample *sample = (const struct ack_sample *)arguments[1];
	u64 least = tp->rtt_min.s[0].v;

	if (tp->snd_cwnd < tp->snd_ssthresh && sample->rtt_us > 0 && (u64)sample->rtt_us * LEAVE_DENOMINATOR > least * LEAVE_NUMERATOR)
		tp->snd_ssthresh = tp->snd_cwnd;
	return 0;
}

/* def on_ack(self, sample, window), where sample.may_raise */
SEC("struct_ops/cong_avoid")
int cong_avoid(u64 *arguments)
{
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
struct tcp_congestion_ops aimd = {
	.ssthresh = (void *)ssthresh,
	.cong_avoid = (void *)cong_avoid,
	.pkts_acked = (void *)pkts_acked,
	.undo_cwnd = (void *)undo_cwnd,
	.name = NAME,
};

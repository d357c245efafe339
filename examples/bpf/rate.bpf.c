/* A control that sets a rate: it sends as fast as packets are delivered, and a little faster in one round trip of eight, to see whether more fits.
 *
 * The same algorithm as examples/python/rate.py. tests/controls/test_cca_load.py holds the two against each other. It takes no loss for congestion and
 * measures no RTT anew: an example, not a control for a shared network.
 *
 *     clang -O2 -g -target bpf -c rate.bpf.c -o rate.bpf.o
 *     sudo tcpscape cca load rate.bpf.o -- tcpscape run --rtt 40ms --rate 20mbit --loss 1% --cca tcpscape_rate,reno --engine live
 *
 * Sources and what is needed: as for aimd.bpf.c; `cong_control` has these arguments from Linux 6.10 on.
 */

typedef unsigned char u8;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef _Bool bool;

#define SEC(name) __attribute__((section(name), used))

#ifndef NAME
#define NAME "tcpscape_rate"
#endif

/* Pace over the estimate while every round trip delivers more than the last, in quarters. */
#define START 8
/* Round trips without a quarter more after which the start is over. */
#define PATIENCE 3

char _license[] SEC("license") = "Dual MIT/GPL";

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct sock {
	unsigned long sk_pacing_rate; /* bytes/s */
	u32 sk_pacing_status;         /* 1: the connection paces by itself */
};

struct inet_connection_sock {
	u64 icsk_ca_priv[13]; /* what a control keeps for a connection */
};

struct minmax_sample {
	u32 t;
	u32 v;
};

struct minmax {
	struct minmax_sample s[3];
};

struct tcp_sock {
	u32 snd_cwnd;       /* packets */
	u32 snd_cwnd_clamp; /* packets */
	u32 mss_cache;      /* bytes */
	u32 delivered;      /* packets */
	struct minmax rtt_min; /* µs; its first sample is the least */
};

struct rate_sample {
	u32 prior_delivered; /* packets delivered when the sampled packet was sent */
	int delivered;       /* packets over the interval */
	long interval_us;
	bool is_app_limited;
};

#pragma clang attribute pop

struct tcp_congestion_ops {
	u32 (*ssthresh)(struct sock *sk);
	void (*cong_control)(struct sock *sk, u32 ack, int flag, const struct rate_sample *sample);
	u32 (*undo_cwnd)(struct sock *sk);
	void (*init)(struct sock *sk);
	char name[16];
};

/* What the Python object has in `self`: in the words of icsk_ca_priv. */
enum { NOW, LAST, BEST, ROUND_END, ROUNDS, WITHOUT };

/* Half of the window; with `cong_control` nobody sets the window by it. */
extern u32 tcp_reno_ssthresh(struct sock *sk) SEC(".ksyms");
extern u32 tcp_reno_undo_cwnd(struct sock *sk) SEC(".ksyms");

/* paced = True, and def __init__(self): the words are 0 when a connection begins */
SEC("struct_ops/init")
int init(u64 *arguments)
{
	((struct sock *)arguments[0])->sk_pacing_status = 1;
	return 0;
}

/* def end_round(self, sample) */
static void end_round(u64 *self, u32 delivered)
{
	self[ROUND_END] = delivered;
	if (self[WITHOUT] < PATIENCE) {
		if (self[NOW] * 4 > self[BEST] * 5) {
			self[BEST] = self[NOW];
			self[WITHOUT] = 0;
		} else {
			self[WITHOUT]++;
		}
	} else {
		self[ROUNDS]++;
	}
	self[LAST] = self[NOW];
	self[NOW] = 0;
}

/* ROUNDS in Python: pace over the estimate in each of eight round trips, in quarters */
static u64 quarters(u64 *self)
{
	if (self[WITHOUT] < PATIENCE)
		return START;
	switch (self[ROUNDS] % 8) {
	case 0:
		return 5;
	case 1:
		return 3;
	}
	return 4;
}

static u64 estimate(u64 *self)
{
	return self[NOW] > self[LAST] ? self[NOW] : self[LAST];
}

/* def on_ack(self, sample, window) */
SEC("struct_ops/cong_control")
int cong_control(u64 *arguments)
{
	struct tcp_sock *tp = (struct tcp_sock *)arguments[0];
	u64 *self = ((struct inet_connection_sock *)arguments[0])->icsk_ca_priv;
	const struct rate_sample *sample = (const struct rate_sample *)arguments[3];
	u64 least = tp->rtt_min.s[0].v, mss = tp->mss_cache, rate, window;

	if (sample->interval_us <= 0 || sample->delivered <= 0 || !least || !mss)
		return 0;
	if (sample->prior_delivered >= self[ROUND_END])
		end_round(self, tp->delivered);
	rate = (u64)sample->delivered * mss * 1000000 / (u64)sample->interval_us;
	if (!sample->is_app_limited || rate > estimate(self))
		self[NOW] = rate > self[NOW] ? rate : self[NOW];
	((struct sock *)arguments[0])->sk_pacing_rate = estimate(self) * quarters(self) / 4;
	window = 2 * estimate(self) * least / 1000000 / mss + 4;
	tp->snd_cwnd = window < tp->snd_cwnd_clamp ? window : tp->snd_cwnd_clamp;
	return 0;
}

SEC("struct_ops/ssthresh")
u32 ssthresh(u64 *arguments)
{
	return tcp_reno_ssthresh((struct sock *)arguments[0]);
}

SEC("struct_ops/undo_cwnd")
u32 undo_cwnd(u64 *arguments)
{
	return tcp_reno_undo_cwnd((struct sock *)arguments[0]);
}

SEC(".struct_ops")
struct tcp_congestion_ops rate = {
	.ssthresh = (void *)ssthresh,
	.cong_control = (void *)cong_control,
	.undo_cwnd = (void *)undo_cwnd,
	.init = (void *)init,
	.name = NAME,
};

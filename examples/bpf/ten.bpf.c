/* The smallest congestion control in BPF: a window of ten segments, whatever happens. Source: Documentation/bpf/ of Linux. */

typedef unsigned int u32;
typedef unsigned long long u64;

#define SEC(name) __attribute__((section(name), used))

#ifndef NAME
#define NAME "tcpscape_ten"
#endif
#define SEGMENTS 10

char _license[] SEC("license") = "Dual MIT/GPL";

struct sock;

struct tcp_sock {
	u32 snd_cwnd;
} __attribute__((preserve_access_index));

/* The members that are set; libbpf finds them in the kernel's own structure by their names. */
struct tcp_congestion_ops {
	u32 (*ssthresh)(struct sock *sk);
	void (*cong_avoid)(struct sock *sk, u32 ack, u32 acked);
	u32 (*undo_cwnd)(struct sock *sk);
	char name[16];
};

SEC("struct_ops/ssthresh")
u32 ssthresh(u64 *arguments)
{
	return SEGMENTS;
}

SEC("struct_ops/cong_avoid")
int cong_avoid(u64 *arguments)
{
	((struct tcp_sock *)arguments[0])->snd_cwnd = SEGMENTS;
	return 0;
}

SEC("struct_ops/undo_cwnd")
u32 undo_cwnd(u64 *arguments)
{
	return SEGMENTS;
}

SEC(".struct_ops")
struct tcp_congestion_ops ten = {
	.ssthresh = (void *)ssthresh,
	.cong_avoid = (void *)cong_avoid,
	.undo_cwnd = (void *)undo_cwnd,
	.name = NAME,
};

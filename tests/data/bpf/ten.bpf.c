/* The smallest congestion control in BPF: a window of ten segments, whatever happens. Source: Documentation/bpf/, bpf_tracing.h of libbpf. */
#include <linux/types.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#ifndef NAME
#define NAME "tcpscape_ten"
#endif
#define SEGMENTS 10

char _license[] SEC("license") = "Dual MIT/GPL";

struct sock;

struct tcp_sock {
	__u32 snd_cwnd;
} __attribute__((preserve_access_index));

/* The members that are set; libbpf finds them in the kernel's own structure by their names. */
struct tcp_congestion_ops {
	__u32 (*ssthresh)(struct sock *sk);
	void (*cong_avoid)(struct sock *sk, __u32 ack, __u32 acked);
	__u32 (*undo_cwnd)(struct sock *sk);
	char name[16];
};

SEC("struct_ops/ssthresh")
__u32 BPF_PROG(ssthresh, struct sock *sk)
{
	return SEGMENTS;
}

SEC("struct_ops/cong_avoid")
void BPF_PROG(cong_avoid, struct sock *sk, __u32 ack, __u32 acked)
{
	((struct tcp_sock *)sk)->snd_cwnd = SEGMENTS;
}

SEC("struct_ops/undo_cwnd")
__u32 BPF_PROG(undo_cwnd, struct sock *sk)
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

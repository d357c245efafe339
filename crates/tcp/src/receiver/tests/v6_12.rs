//! What 6.12 does otherwise than 6.1. Numbers marked "kernel" were recorded from Linux 6.12 in virtual time.

use super::*;

/// Linux 6.12 with room for large buffers.
fn kernel() -> Kernel {
    Kernel { rmem_max: 8 << 20, ..Kernel::V6_12 }
}

#[test]
fn the_first_window_is_not_cut_to_what_the_syn_ack_can_say() {
    let s = Script::new(kernel(), 131_072);
    assert_eq!(s.r.window(), 131_072 / 1_448 * 1_448);
    assert_eq!(Script::new(Kernel::V6_1, 131_072).r.window(), 65_535);
    // The first full segment opens it further; kernel: 132,520, then 2,896 more each.
    let mut s = Script::new(kernel(), 131_072);
    s.at(100);
    s.data(0);
    s.read(u64::MAX);
    s.data(1);
    assert_eq!(s.windows(), [132_520, 135_416]);
}

#[test]
fn a_measured_ratio_moves_the_clamp_and_leaves_what_the_window_has_grown_to() {
    let mut s = Script::new(kernel(), 131_072);
    s.at(100);
    s.data(0);
    // 262,144 · 153/256 = 156,672, more than the 131,072 supposed at first.
    assert_eq!(s.r.window.ceiling(), 156_672);
    assert!(s.r.window.grown() < s.r.window.ceiling());
}

#[test]
fn out_of_order_data_shows_the_segment_size_too() {
    for (kernel, mss) in [(kernel(), 1_448), (Kernel::V6_1, 536)] {
        let mut s = Script::new(kernel, 131_072);
        s.at(100);
        s.data(3);
        assert_eq!(s.r.acks.segment(), mss);
    }
}

#[test]
fn a_segment_without_memory_closes_the_window() {
    let mut s = Script::new(kernel(), 16_384);
    s.at(100);
    s.data(0);
    s.acks();
    let taken = i64::from(s.r.window.capacity().buffer());
    s.r.store.charge(taken);
    s.data(1);
    assert_eq!((s.r.stats().dropped_memory, s.r.rcv_nxt()), (1, at(1)));
    assert_eq!(s.windows(), [0]);
    s.r.store.charge(-taken);
    s.read(u64::MAX);
    assert!(s.windows()[0] > 0);
    // Nothing waits to be read: it is taken, and the window is closed all the same.
    s.r.store.charge(taken + 1);
    s.data(1);
    assert_eq!((s.r.stats().dropped_memory, s.r.rcv_nxt()), (1, at(2)));
    assert_eq!(s.windows(), [0]);
}

#[test]
fn the_head_of_a_buffer_has_less_room() {
    assert_eq!((Kernel::V6_1.head_room(), Kernel::V6_12.head_room()), (384, 64));
}

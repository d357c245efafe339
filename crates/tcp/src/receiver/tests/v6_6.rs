//! What 6.6 does otherwise than 6.1 and 6.12. Numbers marked "kernel" were recorded from Linux 6.6.87 in virtual time.

use super::*;

/// Kernel: 65,160 in the SYN-ACK, then 68,096 and 71,040; in 6.12 the ceiling before the first full segment holds it back, 67,072 and 69,888.
#[test]
fn the_autotuned_window_grows_from_what_was_offered() {
    for (kernel, windows) in [(Kernel::V6_6, [68_096, 71_040]), (Kernel::V6_12, [67_072, 69_888])] {
        let mut s = Script::new(kernel, 0);
        s.at(100);
        s.data(0);
        s.read(u64::MAX);
        s.data(1);
        assert_eq!(s.windows(), windows);
    }
}

/// Kernel: the window of an autotuned buffer stays at 65,280 while segments come beyond the first, which is lost; in 6.12 it grows to 67,072.
#[test]
fn data_beyond_a_gap_measure_nothing() {
    for (kernel, grows) in [(Kernel::V6_6, false), (Kernel::V6_12, true)] {
        let mut s = Script::new(kernel, 0);
        s.at(100);
        let before = s.r.window();
        s.data(1);
        assert_eq!(s.windows()[0] > before.next_multiple_of(128), grows);
    }
}

/// Kernel: 65,535 in the SYN-ACK, then 68,432; the largest window of `SO_RCVBUF=1048576`, cut to 212,992, is what its scale can say, 262,140.
#[test]
fn a_fixed_buffer_begins_with_what_the_syn_ack_says() {
    let mut s = Script::new(Kernel { rmem_max: 212_992, ..Kernel::V6_6 }, 1 << 20);
    assert_eq!(s.r.window(), 65_535);
    s.at(100);
    s.data(0);
    assert_eq!(s.windows(), [68_432]);
    assert_eq!(s.r.window.ceiling(), 262_912);
    assert_eq!(s.r.window.scale(), 2);
}

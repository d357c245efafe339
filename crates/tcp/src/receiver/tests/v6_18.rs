//! What 6.18 does otherwise than 6.12.

use super::*;

/// What comes beyond a gap needs room besides what is read in a round trip: 6.18 makes it with each segment.
#[test]
fn the_buffer_makes_room_for_what_waits_beyond_a_gap() {
    for (kernel, grows) in [(Kernel::V6_12, false), (Kernel::V6_18, true)] {
        let mut s = Script::new(kernel, 0);
        s.stream(40);
        s.at(400);
        let before = s.r.window.capacity().buffer();
        for n in 41..80 {
            s.data(n);
        }
        assert_eq!(s.r.window.capacity().buffer() > before, grows);
    }
}

/// Kernel: 133,216, two segments more than the 90 that the SYN-ACK granted; 6.12 begins at 131,072 less one segment.
#[test]
fn a_measured_ratio_opens_the_window_to_what_is_offered() {
    for (kernel, window) in [(Kernel::V6_12, 132_520), (Kernel::V6_18, 133_216)] {
        let mut s = Script::new(Kernel { rmem_max: 8 << 20, ..kernel }, 131_072);
        s.at(100);
        s.data(0);
        assert_eq!(s.windows(), [window]);
    }
}

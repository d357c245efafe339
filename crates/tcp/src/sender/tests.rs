//! Packet scripts: segments and times in, segments and window out.

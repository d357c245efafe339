//! The emulated link without a clock or a socket: frames in, the decisions of the path, frames out.

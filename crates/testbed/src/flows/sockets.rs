//! The sockets of a flow before they are connected: congestion control, buffers, Nagle's algorithm. Source: tcp(7), socket(7).

use crate::sys;
use socket2::{Domain, Protocol, Socket, Type};
use std::io;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::os::fd::AsFd;
use tcpscape_plan::FlowPlan;

/// Congestion controls that need ECN at both ends. Linux: TCP_CONG_NEEDS_ECN.
const NEED_ECN: [&str; 2] = ["dctcp", "prague"];

/// What a buffer may be set to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Buffers {
    /// At most what the kernel allows every program (net.core.rmem_max, wmem_max): what is more becomes that, silently.
    #[default]
    Allowed,
    /// Any size where this process may exceed the limits (CAP_NET_ADMIN in the machine's first user namespace), elsewhere as allowed.
    Forced,
}

/// A socket that listens on a port.
pub(crate) fn listener(plan: &FlowPlan, port: u16, buffers: Buffers) -> io::Result<Socket> {
    let socket = tcp()?;
    if plan.rcvbuf > 0 {
        socket.set_recv_buffer_size(plan.rcvbuf as usize)?;
        if buffers == Buffers::Forced {
            sys::force_buffer(socket.as_fd(), sys::Buffer::Receive, plan.rcvbuf);
        }
    }
    if let Some(cca) = listening(plan) {
        congestion(&socket, "listener", cca)?;
    }
    socket.bind(&SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, port).into())?;
    socket.listen(1)?;
    Ok(socket)
}

/// A socket that is to connect.
pub(crate) fn sender(plan: &FlowPlan, buffers: Buffers) -> io::Result<Socket> {
    let socket = tcp()?;
    congestion(&socket, "cca", &plan.cca)?;
    socket.set_tcp_nodelay(plan.nodelay)?;
    if plan.sndbuf > 0 {
        socket.set_send_buffer_size(plan.sndbuf as usize)?;
        if buffers == Buffers::Forced {
            sys::force_buffer(socket.as_fd(), sys::Buffer::Send, plan.sndbuf);
        }
    }
    Ok(socket)
}

fn tcp() -> io::Result<Socket> {
    Socket::new(Domain::IPV4, Type::STREAM, Some(Protocol::TCP))
}

/// The congestion control of the listening socket; None leaves it the kernel's default.
fn listening(plan: &FlowPlan) -> Option<&str> {
    plan.listener.as_deref().or_else(|| NEED_ECN.contains(&plan.cca.as_str()).then_some(plan.cca.as_str()))
}

fn congestion(socket: &Socket, field: &str, cca: &str) -> io::Result<()> {
    let refused = |e: io::Error| io::Error::new(e.kind(), format!("{field}: the kernel refuses {cca:?}: {e}"));
    socket.set_tcp_congestion(cca.as_bytes()).map_err(refused)
}

//! s2n-quic: cubic and bbr (BBR 2).

use bytes::Bytes;
use quic_transfer::{any, refuse, report, role, Role, CERTIFICATE, KEY, NAME, PART, PORT, WINDOW};
use s2n_quic::client::Connect;
use s2n_quic::provider::congestion_controller::{Bbr, Cubic};
use s2n_quic::provider::limits::Limits;
use s2n_quic::{Client, Connection, Server};
use std::error::Error;
use std::net::SocketAddr;
use std::path::Path;
use std::time::{Duration, Instant};

type Outcome<T = ()> = Result<T, Box<dyn Error>>;

fn main() -> Outcome {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        match role() {
            Role::Serve(control) => serve(&control).await,
            Role::Get(address, time) => get(address, time).await,
        }
    })
}

fn limits() -> Outcome<Limits> {
    let window = u64::from(WINDOW);
    let limits = Limits::new().with_data_window(window)?.with_max_send_buffer_size(WINDOW)?;
    Ok(limits.with_bidirectional_local_data_window(window)?.with_bidirectional_remote_data_window(window)?)
}

async fn serve(control: &str) -> Outcome {
    let builder = Server::builder().with_tls((Path::new(CERTIFICATE), Path::new(KEY)))?.with_io(any(PORT))?.with_limits(limits()?)?;
    let mut server = match control {
        "cubic" => builder.with_congestion_controller(Cubic::default())?.start()?,
        "bbr" => builder.with_congestion_controller(Bbr::default())?.start()?,
        _ => refuse("s2n-quic has cubic and bbr"),
    };
    while let Some(connection) = server.accept().await {
        tokio::spawn(async move {
            let _ = send(connection).await; // until the client closes it
        });
    }
    Ok(())
}

async fn send(mut connection: Connection) -> Outcome {
    while let Some(mut stream) = connection.accept_bidirectional_stream().await? {
        loop {
            stream.send(Bytes::from_static(&PART)).await?;
        }
    }
    Ok(())
}

async fn get(address: SocketAddr, time: Duration) -> Outcome {
    let client = Client::builder().with_tls(Path::new(CERTIFICATE))?.with_io(any(0))?.with_limits(limits()?)?.start()?;
    let mut connection = client.connect(Connect::new(address).with_server_name(NAME)).await?;
    let mut stream = connection.open_bidirectional_stream().await?;
    stream.send(Bytes::from_static(b"x")).await?;
    let (began, mut bytes) = (Instant::now(), 0);
    let read = async {
        while let Ok(Some(part)) = stream.receive().await {
            bytes += part.len() as u64;
        }
    };
    let _ = tokio::time::timeout(time, read).await; // it never ends by itself
    report(bytes, began.elapsed());
    connection.close(0u32.into());
    Ok(())
}

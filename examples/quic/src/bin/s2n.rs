//! s2n-quic: cubic and bbr (BBR 2).

use bytes::Bytes;
use quic_transfer::{any, read_for, refuse, run, serve_client, Outcome, CERTIFICATE, KEY, NAME, PART, PORT, WINDOW};
use s2n_quic::client::Connect;
use s2n_quic::provider::congestion_controller::{Bbr, Cubic};
use s2n_quic::provider::limits::Limits;
use s2n_quic::{Client, Connection, Server};
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

fn main() -> Outcome {
    run(serve, get)
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
        serve_client(send(connection));
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
    read_for(time, async || Some(stream.receive().await.ok()??.len())).await;
    connection.close(0u32.into());
    Ok(())
}

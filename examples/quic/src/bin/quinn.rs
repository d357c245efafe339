//! quinn: cubic, bbr (its own early version of BBR 1) and reno.

use quic_transfer::{any, read_for, refuse, run, serve_client, Outcome, CERTIFICATE, KEY, NAME, PART, PORT, PROTOCOL, WINDOW};
use quinn::congestion::{BbrConfig, CubicConfig, NewRenoConfig};
use quinn::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use quinn::{ClientConfig, Connection, Endpoint, ServerConfig, TransportConfig, VarInt};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

fn main() -> Outcome {
    run(serve, get)
}

fn transport(control: &str) -> Arc<TransportConfig> {
    let mut config = TransportConfig::default();
    let window = VarInt::from_u32(WINDOW);
    config.receive_window(window).stream_receive_window(window).send_window(WINDOW.into());
    match control {
        "cubic" => config.congestion_controller_factory(Arc::new(CubicConfig::default())),
        "bbr" => config.congestion_controller_factory(Arc::new(BbrConfig::default())),
        "reno" => config.congestion_controller_factory(Arc::new(NewRenoConfig::default())),
        _ => refuse("quinn has cubic, bbr and reno"),
    };
    Arc::new(config)
}

async fn serve(control: &str) -> Outcome {
    let certificate = CertificateDer::from_pem_file(CERTIFICATE)?;
    let key = PrivateKeyDer::from_pem_file(KEY)?;
    let mut tls = rustls::ServerConfig::builder().with_no_client_auth().with_single_cert(vec![certificate], key)?;
    tls.alpn_protocols = vec![PROTOCOL.to_vec()];
    let mut config = ServerConfig::with_crypto(Arc::new(QuicServerConfig::try_from(tls)?));
    config.transport_config(transport(control));
    let endpoint = Endpoint::server(config, any(PORT))?;
    while let Some(incoming) = endpoint.accept().await {
        serve_client(async { send(incoming.await?).await });
    }
    Ok(())
}

async fn send(connection: Connection) -> Outcome {
    let (mut stream, _request) = connection.accept_bi().await?;
    loop {
        stream.write_all(&PART).await?;
    }
}

async fn get(address: SocketAddr, time: Duration) -> Outcome {
    let mut roots = rustls::RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(CERTIFICATE)?)?;
    let mut tls = rustls::ClientConfig::builder().with_root_certificates(roots).with_no_client_auth();
    tls.alpn_protocols = vec![PROTOCOL.to_vec()];
    let mut config = ClientConfig::new(Arc::new(QuicClientConfig::try_from(tls)?));
    config.transport_config(transport("cubic"));
    let connection = Endpoint::client(any(0))?.connect_with(config, address, NAME)?.await?;
    let (mut request, mut stream) = connection.open_bi().await?;
    request.write_all(b"x").await?;
    // As it comes, not in order: quinn-proto closes a connection that has more than 1,024 gaps in what waits for its reader.
    read_for(time, async || Some(stream.read_chunk(usize::MAX, false).await.ok()??.bytes.len())).await;
    connection.close(VarInt::from_u32(0), b"");
    Ok(())
}

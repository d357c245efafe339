//! quinn: cubic, bbr (its own early version of BBR 1) and reno.

use quic_transfer::{any, refuse, report, role, Role, CERTIFICATE, KEY, NAME, PART, PORT, PROTOCOL, WINDOW};
use quinn::congestion::{BbrConfig, CubicConfig, NewRenoConfig};
use quinn::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use quinn::{ClientConfig, Connection, Endpoint, ServerConfig, TransportConfig, VarInt};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use std::error::Error;
use std::net::SocketAddr;
use std::sync::Arc;
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
        tokio::spawn(async move {
            if let Ok(connection) = incoming.await {
                let _ = send(connection).await; // until the client closes it
            }
        });
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
    let (began, mut bytes) = (Instant::now(), 0);
    let read = async {
        while let Ok(Some(part)) = stream.read_chunk(usize::MAX, true).await {
            bytes += part.bytes.len() as u64;
        }
    };
    let _ = tokio::time::timeout(time, read).await; // it never ends by itself
    report(bytes, began.elapsed());
    connection.close(VarInt::from_u32(0), b"");
    Ok(())
}

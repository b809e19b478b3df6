//! jsonrpsee's server, on a thread of its own as all others.
use jsonrpsee::server::Server;
use jsonrpsee::{types::ErrorObjectOwned, RpcModule};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let port = std::env::args()
        .nth(1)
        .ok_or("usage: with_jsonrpsee PORT")?;
    let mut module = RpcModule::new(());
    module.register_method("subtract", |params, _, _| {
        let (minuend, subtrahend): (i64, i64) = params.parse()?;
        Ok::<_, ErrorObjectOwned>(minuend - subtrahend)
    })?;
    let server = Server::builder().build(format!("127.0.0.1:{port}")).await?;
    server.start(module).stopped().await;
    Ok(())
}

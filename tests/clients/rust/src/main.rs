// jsonrpsee: calls, errors, notifications and batches by HTTP; the same, and subscriptions, with its asynchronous client
// as lines over a unix socket, at a server and through a broker.
use std::env::var;
use std::time::Duration;

use jsonrpsee_core::client::{
    Client, ClientT, Error, ReceivedMessage, SubscriptionClientT, TransportReceiverT, TransportSenderT,
};
use jsonrpsee_core::params::{ArrayParams, BatchRequestBuilder};
use jsonrpsee_http_client::HttpClient;
use serde_json::{json, Value};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::UnixStream;

type Failure = Box<dyn std::error::Error + Send + Sync>;

// A transport of the user's own, as jsonrpsee has them: a message a line.
struct Sender(OwnedWriteHalf);
struct Receiver(BufReader<OwnedReadHalf>);

impl TransportSenderT for Sender {
    type Error = std::io::Error;
    async fn send(&mut self, message: String) -> Result<(), Self::Error> {
        self.0.write_all((message + "\n").as_bytes()).await
    }
}

impl TransportReceiverT for Receiver {
    type Error = std::io::Error;
    async fn receive(&mut self) -> Result<ReceivedMessage, Self::Error> {
        let mut line = String::new();
        match self.0.read_line(&mut line).await? {
            0 => Err(std::io::ErrorKind::UnexpectedEof.into()),
            _ => Ok(ReceivedMessage::Text(line)),
        }
    }
}

fn params(values: &[Value]) -> ArrayParams {
    let mut params = ArrayParams::new();
    values.iter().for_each(|value| params.insert(value).unwrap());
    params
}

fn batch(count: i64) -> BatchRequestBuilder<'static> {
    let mut batch = BatchRequestBuilder::new();
    (0..count).for_each(|i| batch.insert("subtract", params(&[json!(i), json!(1)])).unwrap());
    batch
}

// The code and data of an error that the server has answered.
fn refusal<T: std::fmt::Debug>(answer: Result<T, Error>) -> (i32, Value) {
    match answer {
        Err(Error::Call(error)) => {
            (error.code(), error.data().map_or(Value::Null, |data| serde_json::from_str(data.get()).unwrap()))
        }
        other => panic!("{other:?}"),
    }
}

async fn check(client: &impl ClientT) -> Result<(), Failure> {
    assert_eq!(client.request::<i64, _>("subtract", params(&[json!(42), json!(23)])).await?, 19);
    client.notification("subtract", params(&[json!(1), json!(2)])).await?;
    let asked = params(&[json!(7), json!("as asked")]);
    assert_eq!(refusal(client.request::<Value, _>("fail", asked).await).0, 7);
    assert_eq!(refusal(client.request::<Value, _>("nothing_of_that_name", params(&[])).await).0, -32601);
    let (code, data) = refusal(client.request::<i64, _>("subtract", params(&[json!("x"), json!(1)])).await);
    assert_eq!((code, &data["got"]), (-32602, &json!("\"x\"")));

    let answers = client.batch_request::<i64>(batch(100)).await?;
    let differences: Vec<i64> = answers.into_iter().map(|one| one.unwrap()).collect();
    assert_eq!(differences, (-1..99).collect::<Vec<i64>>());

    // Beyond the limit: each call is refused.
    let answers = client.batch_request::<i64>(batch(1001)).await?;
    assert_eq!((answers.len(), answers.num_failed_calls()), (1001, 1001));
    for answer in answers.into_iter() {
        let error = answer.unwrap_err();
        assert_eq!((error.code(), error.data().unwrap().get().contains("\"limit\":\"batch\"")), (-32600, true));
    }
    assert_eq!(client.request::<i64, _>("subtract", params(&[json!(5), json!(3)])).await?, 2);
    Ok(())
}

async fn check_subscriptions(client: &Client) -> Result<(), Failure> {
    let asked = || params(&[json!("newHeads")]);
    let mut heads = client.subscribe::<Value, _>("eth_subscribe", asked(), "eth_unsubscribe").await?;
    let mut others = client.subscribe::<Value, _>("eth_subscribe", asked(), "eth_unsubscribe").await?;
    for number in 1..=10 {
        for subscription in [&mut heads, &mut others] {
            let head = subscription.next().await.expect("it goes on")?;
            assert_eq!(head["number"], format!("{number:#x}"));
        }
    }
    heads.unsubscribe().await?;
    assert_eq!(others.next().await.expect("it goes on")?["number"], "0xb");
    others.unsubscribe().await?;
    let refused = client.subscribe::<Value, _>("eth_subscribe", params(&[json!("nothing")]), "eth_unsubscribe").await;
    assert_eq!(refusal(refused.map(|_| ())).0, -32602);
    Ok(())
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Failure> {
    let timeout = Duration::from_secs(50);
    let by_http = HttpClient::builder()
        .request_timeout(timeout)
        .build(format!("http://127.0.0.1:{}/rpc", var("TCP_PORT")?))?;
    check(&by_http).await?;
    for path in [var("UNIX_PATH")?, var("BROKER_PATH")?] {
        let (reading, writing) = UnixStream::connect(path).await?.into_split();
        let client = Client::builder()
            .request_timeout(timeout)
            .build_with_tokio(Sender(writing), Receiver(BufReader::new(reading)));
        check(&client).await?;
        check_subscriptions(&client).await?;
    }
    Ok(())
}

// npm's ws. A CommonJS module, since NODE_PATH finds packages for these alone.
const { WebSocketServer } = require("ws");

const methods = { subtract: (minuend, subtrahend) => minuend - subtrahend };

new WebSocketServer({ host: "127.0.0.1", port: Number(process.argv[2]) }).on("connection", (connection) => {
  connection.on("message", (message) => {
    const call = JSON.parse(message);
    const result = methods[call.method](...call.params);
    connection.send(JSON.stringify({ jsonrpc: "2.0", result, id: call.id }));
  });
});

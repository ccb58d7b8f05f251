// Runs inside a jail when socat isn't there: puts the jail's own loopback through to the session's unix socket.
"use strict";
const { connect, createServer } = require("node:net");

const PORT = 3128;
const CHANNEL = "/run/ambit/channel.sock";

// noDelay: the end of an answer that comes in two pieces would wait for the client's delayed ACK, 40 ms.
createServer({ allowHalfOpen: true, noDelay: true }, (client) => {
  const channel = connect({ path: CHANNEL, allowHalfOpen: true });
  const cut = () => {
    client.destroy();
    channel.destroy();
  };
  client.on("error", cut);
  channel.on("error", cut);
  client.pipe(channel).pipe(client);
}).listen(PORT, "127.0.0.1");

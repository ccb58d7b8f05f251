import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { defaultProxyLimits } from "@ambit/egress/proxy";
import { expect, onTestFinished, test } from "vitest";
import { exposeOnLoopback } from "../../src/expose/channel.js";

test("exposures on loopback hold no more connections than a session may have", async () => {
  const exposure = await exposeOnLoopback(() => new Response("served"));
  onTestFinished(() => exposure.close());
  const port = Number(new URL(exposure.url).port);
  const open = new Set<Socket>();
  for (let index = 0; index < defaultProxyLimits.connections + 20; index++) {
    const socket = connect(port, "127.0.0.1");
    open.add(socket);
    socket.on("error", () => undefined);
    socket.once("close", () => open.delete(socket));
    socket.resume();
    await Promise.race([once(socket, "connect"), once(socket, "close")]);
    socket.write("POST / HTTP/1.1\r\n");
  }
  await expect.poll(() => open.size).toBe(defaultProxyLimits.connections);
  for (const socket of open) socket.destroy();
  const ask = () =>
    fetch(exposure.url, { headers: { authorization: `Bearer ${exposure.token}` } }).then(
      (response) => response.text(),
      () => "no answer",
    );
  await expect.poll(ask).toBe("served");
});

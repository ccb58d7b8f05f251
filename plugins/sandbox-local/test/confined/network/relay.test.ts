// needs: jail
import { once } from "node:events";
import { type AddressInfo, createServer } from "node:net";
import type { NetworkBoundary } from "@ambit/core/plugin";
import { expect, onTestFinished, test } from "vitest";
import { openConfined, path, run } from "../../support/specs.js";

/** Sends back what it gets, and ends when its client has. */
async function startEcho(address: string): Promise<number> {
  const server = createServer({ allowHalfOpen: true }, (socket) => {
    socket.on("error", () => undefined);
    socket.pipe(socket);
  });
  onTestFinished(() => {
    server.close();
  });
  server.listen(0, address);
  await once(server, "listening");
  return (server.address() as AddressInfo).port;
}

/** Sends to all addresses at once before it reads anything, ends its side, and prints what came back of each. */
const exchange = `
const net = require("node:net");
const { createHash } = require("node:crypto");
const sent = Buffer.alloc(3_000_000, "some bytes of no importance. ");
const hashOf = (bytes) => createHash("sha256").update(bytes).digest("hex");
Promise.all(process.argv.slice(1).map(async (target) => {
  const [, host, port] = /^(.*):(\\d+)$/.exec(target);
  const socket = net.connect(Number(port), host);
  socket.end(sent);
  await new Promise((resolve) => setTimeout(resolve, 300));
  const received = await socket.toArray();
  return hashOf(Buffer.concat(received)) === hashOf(sent) ? "same" : "different";
})).then((all) => console.log(all.join(" ")));
`;

test("the relay passes everything both ways at once, and each side's end alone, to all listed ports", async () => {
  const [four, six] = [await startEcho("127.0.0.1"), await startEcho("::1")];
  const range = { kind: "range", port: four } as const;
  const network: NetworkBoundary = {
    mode: "allowlist",
    rules: [
      { ...range, cidr: "127.0.0.1/32", family: 4 },
      { ...range, port: six, cidr: "::1/128", family: 6 },
    ],
  };
  const sandbox = await openConfined({ network });
  const targets = Array.from({ length: 10 }, () => [`127.0.0.1:${four}`, `::1:${six}`]).flat();
  const { stdout, stderr } = await run(sandbox, ["node", "-e", exchange, ...targets], {
    env: { PATH: path },
  });
  expect(stderr).toBe("");
  expect(stdout).toBe(`${targets.map(() => "same").join(" ")}\n`);
});

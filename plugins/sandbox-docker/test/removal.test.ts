import { once } from "node:events";
import { createServer } from "node:http";
import Docker from "dockerode";
import { expect, it, onTestFinished } from "vitest";
import { configSchema } from "../src/index.js";
import { removeContainer } from "../src/open/container.js";

/** An engine that answers requests to remove a container in this order. */
async function engineWith(answers: readonly (readonly [status: number, message: string])[]) {
  let asked = 0;
  const server = createServer((_request, response) => {
    const [status, message] = answers[asked] ?? [404, "no such container"];
    asked += 1;
    response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify({ message }));
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  onTestFinished(async () => {
    server.closeAllConnections();
    server.close();
  });
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("loopback gave no port");
  const docker = new Docker({ protocol: "http", host: "127.0.0.1", port: address.port });
  return {
    remove: () => removeContainer(docker.getContainer("c"), configSchema.parse({})),
    asked: () => asked,
  };
}

it("removes a container again whose last state the engine was writing", async () => {
  const message = "unable to remove filesystem for c: unlinkat /data/containers/c: directory not empty";
  const engine = await engineWith([
    [500, message],
    [409, "removal of container c is already in progress"],
  ]);
  await engine.remove();
  expect(engine.asked()).toBe(3);
});

it("reports every other failure of a removal at once", async () => {
  const engine = await engineWith([[500, "driver failed"]]);
  await expect(engine.remove()).rejects.toThrow("driver failed");
  expect(engine.asked()).toBe(1);
});

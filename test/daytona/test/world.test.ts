import { createServer } from "node:http";
import { describe, expect, it } from "vitest";
import { output, useLoopback, useSandbox } from "./loopback.js";

describe("the world's hosts", () => {
  const fixture = useLoopback({
    world: [
      {
        name: "answers.test",
        ports: [80, 9000],
        respond: (request, response) => {
          request.resume();
          response.writeHead(201).end(`${request.method} ${request.url}`);
        },
      },
    ],
  });
  const sandbox = useSandbox(fixture);

  it("respond as a test says, and record requests", async () => {
    const { world } = fixture().loopback;
    expect(await output(sandbox(), "curl -s -m 5 -d body http://answers.test:9000/path")).toBe("POST /path");
    expect(world.requests()).toMatchObject([
      {
        host: "answers.test",
        port: 9000,
        method: "POST",
        url: "/path",
        body: "body",
        sandboxId: sandbox().id,
      },
    ]);
    world.clear();
    expect([world.requests(), world.arrivals(), world.queries()]).toEqual([[], [], []]);
  });

  it("can be added later, and forward connections to a server of the test", async () => {
    const { world } = fixture().loopback;
    const server = createServer((_, response) => response.end("from the test"));
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    try {
      const address = server.address();
      const port = address !== null && typeof address === "object" ? address.port : 0;
      const host = await world.add({ name: "forwarded.test", forwardTo: port });
      expect(host).toEqual({ name: "forwarded.test", address: "10.99.0.3", ports: [80] });
      await expect(world.add({ name: "forwarded.test" })).rejects.toThrow("already");
      expect(await output(sandbox(), "curl -s -m 5 http://forwarded.test/")).toBe("from the test");
      expect(world.requests()).toEqual([]);
      expect(world.arrivals()).toMatchObject([{ host: "forwarded.test", protocol: "tcp" }]);
    } finally {
      server.closeAllConnections();
      server.close();
    }
  });
});

import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { expect, it, onTestFinished } from "vitest";
import { ExposedHandlers } from "../src/exposed-handlers.js";

it("handlers at one address each respond to their own token, until they are closed", async () => {
  const handlers = new ExposedHandlers();
  const server = createServer(handlers.listener);
  onTestFinished(() => void server.close());
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const ask = async (token: string) => {
    const response = await fetch(url, { headers: { authorization: `Bearer ${token}` } });
    return response.ok ? response.text() : response.status;
  };
  const one = handlers.add(url, () => new Response("one"));
  const two = handlers.add(url, () => new Response("two"));
  expect([await ask(one.token), await ask(two.token), await ask("wrong")]).toEqual(["one", "two", 401]);
  await one.close();
  expect([await ask(one.token), await ask(two.token)]).toEqual([401, "two"]);
  handlers.clear();
  expect(await ask(two.token)).toBe(401);
});

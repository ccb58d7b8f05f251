import type { PublishedTool } from "@ambit/core/plugin";
import {
  Client as ModernClient,
  StreamableHTTPClientTransport as ModernTransport,
} from "@modelcontextprotocol/client";
import { Client as LegacyClient } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport as LegacyTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { ToolListChangedNotificationSchema } from "@modelcontextprotocol/sdk/types.js";
import { describe, expect, it, onTestFinished } from "vitest";
import { type Published, publish } from "./publications.js";

const who = { name: "test-client", version: "1.0.0" };
const tool = (name: string): PublishedTool => ({ name, inputSchema: { type: "object" } });

/** A publication whose tools the test changes. */
async function changing() {
  let change: (tools: readonly PublishedTool[]) => void = () => {};
  const watch = (changed: typeof change) => {
    change = changed;
  };
  const published = await publish(undefined, { tools: [tool("old")], watch });
  onTestFinished(() => published.scope.close());
  return { published, change: (...names: string[]) => change(names.map(tool)) };
}

const clients = {
  async modern({ url, headers }: Published) {
    const heard = Promise.withResolvers<void>();
    const client = new ModernClient(who, {
      versionNegotiation: { mode: "auto" },
      listChanged: { tools: { autoRefresh: false, debounceMs: 0, onChanged: () => heard.resolve() } },
    });
    await client.connect(new ModernTransport(new URL(url), { requestInit: { headers: { ...headers } } }));
    return { client, heard: heard.promise };
  },
  async legacy({ url, headers }: Published) {
    const heard = Promise.withResolvers<void>();
    const streaming = Promise.withResolvers<void>();
    const client = new LegacyClient(who);
    client.setNotificationHandler(ToolListChangedNotificationSchema, () => heard.resolve());
    const transport = new LegacyTransport(new URL(url), {
      requestInit: { headers: { ...headers } },
      fetch: async (input, init) => {
        const response = await fetch(input, init);
        if (init?.method === "GET") streaming.resolve();
        return response;
      },
    });
    await client.connect(transport);
    await streaming.promise;
    return { client, heard: heard.promise };
  },
};

describe.each(["modern", "legacy"] as const)("a %s client", (kind) => {
  it("hears of changed tools, lists and calls them, and is told that one was removed", async () => {
    const { published, change } = await changing();
    const { client, heard } = await clients[kind](published);
    onTestFinished(() => client.close());
    expect(client.getServerCapabilities()?.tools).toEqual({ listChanged: true });
    const listed = async () => (await client.listTools()).tools.map(({ name }) => name);
    expect(await listed()).toEqual(["old"]);
    change("new");
    await heard;
    expect(await listed()).toEqual(["new"]);
    expect(await client.callTool({ name: "new", arguments: {} })).toMatchObject({
      content: [{ type: "text", text: "new {}" }],
    });
    await expect(client.callTool({ name: "old", arguments: {} })).rejects.toThrow(
      "The server has removed the tool 'old'. Offered: new.",
    );
  });
});

it("a stream of changes ends with the publication, and the oldest makes room for a ninth", async () => {
  const { published } = await changing();
  const { url, headers } = published;
  const open = async () =>
    (await fetch(url, { headers: { ...headers, accept: "text/event-stream" } })).text();
  const streams = Array.from({ length: 9 }, open);
  // The ninth is open: the first one, whichever that is, has ended.
  await Promise.race(streams);
  await published.scope.close();
  for (const stream of streams) expect(await stream).toContain(": alive");
});

it("a publication that doesn't change has no such stream", async () => {
  const { url, headers, scope } = await publish();
  onTestFinished(() => scope.close());
  const response = await fetch(url, { headers: { ...headers, accept: "text/event-stream" } });
  expect(response.status).toBe(405);
});

import { freshSecret } from "@ambit/attacks";
import { callPure, pluginReturns } from "@ambit/core";
import type { Publication, PublishedCall, PublishedOutcome, ToolDelivery } from "@ambit/core/plugin";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { BareSandbox } from "../control/bare-sandbox.js";
import { McpClient } from "../delivery/mcp-client.js";
import { hardTools, privateFields } from "../delivery/tools.js";
import { KitScope, silentLog } from "../stage/kit-scope.js";
import { expectProven } from "./expect-proven.js";
import { showSkips } from "./skip.js";

const testMs = 60_000;
const atOnce = 20;

/** The requirements on a tool delivery, as a suite; the agent is an MCP client over Streamable HTTP. */
export function describeToolDelivery(makeDelivery: () => ToolDelivery): void {
  describe(`tool delivery ${makeDelivery().name}`, { timeout: testMs }, () => {
    showSkips();
    let scope: KitScope;
    let sandbox: BareSandbox;
    let delivery: ToolDelivery;
    beforeEach(async () => {
      scope = new KitScope();
      sandbox = await BareSandbox.open({ user: undefined, confinement: "unconfined", env: {} });
      delivery = makeDelivery();
    });
    afterEach(async () => {
      await scope.close();
      await sandbox.close();
    });

    const publish = async (overrides: Partial<Publication> = {}) => {
      const calls: PublishedCall[] = [];
      const call = async (one: PublishedCall): Promise<PublishedOutcome> => {
        calls.push(one);
        return { output: JSON.stringify(one.arguments), isError: false };
      };
      const publication: Publication = { name: "ambit", tools: hardTools, call, ...overrides };
      const server = await delivery.publish(publication, {
        sandbox,
        log: silentLog,
        signal: scope.signal,
        defer: (close) => scope.defer(close),
      });
      return { server, calls, client: new McpClient(server) };
    };

    it("describes itself as data", () => {
      const touches = () => callPure(delivery, "touches", pluginReturns.domains, () => delivery.touches());
      expect(touches(), "touches() must return the same each time").toEqual(touches());
    });

    it("proves its claims, or reports why this host can't", async (context) => {
      await expectProven(delivery, context);
    });

    it("lists the tools with their names, descriptions and schemas unchanged", async () => {
      const { client, server } = await publish();
      expect(server.name).toBe("ambit");
      await client.open();
      const seen = await client.list();
      expect(seen.map(({ name, description, inputSchema }) => ({ name, description, inputSchema }))).toEqual(
        hardTools.map(({ name, description, inputSchema }) => ({ name, description, inputSchema })),
      );
    });

    it("knows whether the agent has listed the tools", async () => {
      const { client, server } = await publish();
      expect(server.listed(), "listed() must be false until the agent has asked for the tools").toBe(false);
      await client.open();
      expect(server.listed(), "listed() must be false until the agent has asked for the tools").toBe(false);
      await client.list();
      expect(server.listed(), "listed() must be true once the agent has asked for the tools").toBe(true);
    });

    it("reveals only a tool's public fields to the agent", async () => {
      const secret = freshSecret();
      const tools = hardTools.map((tool) => ({ ...tool, ...privateFields(secret) }));
      const { client } = await publish({ tools });
      await client.open();
      await client.list();
      await client.call("plain", {});
      expect(client.received).toContain("plain");
      expect(client.received).not.toContain(secret);
    });

    it("passes on a call's arguments and its outcome unchanged", async () => {
      const { client, calls } = await publish();
      await client.open();
      const args = {
        text: 'snow ☃ \u2028 \\ " </script>',
        deep: [{ a: null, b: [1.5, -0, true] }],
        long: "x".repeat(500_000),
      };
      const { text, isError } = await client.call("plain", args);
      expect(JSON.parse(text)).toEqual(JSON.parse(JSON.stringify(args)));
      expect(isError, "a call that succeeded must not be marked as failed").toBe(false);
      expect(calls).toMatchObject([{ name: "plain", arguments: JSON.parse(JSON.stringify(args)) }]);
    });

    it("marks a failed call as failed", async () => {
      const { client } = await publish({ call: async () => ({ output: "it was refused", isError: true }) });
      await client.open();
      expect(await client.call("plain", {})).toEqual({ text: "it was refused", isError: true });
    });

    it("refuses a tool that isn't published, and executes nothing", async () => {
      const { client, calls } = await publish();
      await client.open();
      for (const name of ["unknown", "PLAIN", "plain ", "", "__proto__", "constructor"]) {
        expect((await client.call(name, {})).isError, name).toBe(true);
      }
      expect(calls).toEqual([]);
    });

    it("keeps simultaneous calls apart", async () => {
      const { client } = await publish();
      await client.open();
      const numbers = Array.from({ length: atOnce }, (_, index) => index);
      const results = await Promise.all(numbers.map((number) => client.call("plain", { number })));
      expect(results.map(({ text }) => JSON.parse(text))).toEqual(numbers.map((number) => ({ number })));
    });

    it("aborts a call that the agent cancels", async () => {
      let begin: (call: PublishedCall) => void;
      const begun = new Promise<PublishedCall>((resolve) => {
        begin = resolve;
      });
      const { client } = await publish({
        call: (one) => {
          begin(one);
          return new Promise((resolve) => {
            one.signal.addEventListener("abort", () => resolve({ output: "given up", isError: true }));
          });
        },
      });
      await client.open();
      const abort = new AbortController();
      const given = client.call("plain", {}, abort.signal).catch(() => "gone");
      const { signal } = await begun;
      expect(signal.aborted, "the call must not be aborted before the agent cancels it").toBe(false);
      const aborted = new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve()));
      abort.abort();
      await aborted;
      expect(await given).toBe("gone");
    });

    it("refuses requests without a token, or with another one's", async () => {
      const { server, calls } = await publish();
      const other = await publish({ name: "other" });
      for (const headers of [
        {},
        { Authorization: "Bearer " },
        { Authorization: "Bearer wrong" },
        other.server.headers,
      ]) {
        const stranger = new McpClient({ url: server.url, headers });
        const answer = await stranger.ask("tools/call", { name: "plain", arguments: {} });
        expect([401, 403], "a request without the token of this publication must be refused").toContain(
          answer.status,
        );
      }
      expect(calls).toEqual([]);
      expect(server.listed(), "listed() must be false until the agent has asked for the tools").toBe(false);
    });

    it("serves each publication its own tools", async () => {
      const [first] = hardTools;
      const one = await publish();
      const two = await publish({ name: "two", tools: [{ ...first, name: "only_here" }] });
      await two.client.open();
      expect((await two.client.list()).map(({ name }) => name)).toEqual(["only_here"]);
      expect(
        (await two.client.call("plain", {})).isError,
        "a tool of another publication must be refused",
      ).toBe(true);
      await one.client.open();
      expect((await one.client.list()).map(({ name }) => name)).toEqual(hardTools.map(({ name }) => name));
    });

    it("refuses requests after its scope was closed", async () => {
      const { client } = await publish();
      await client.open();
      await scope.close();
      await expect(client.list()).rejects.toThrow();
    });
  });
}

import assert from "node:assert/strict";
import { once } from "node:events";
import type { ServerResponse } from "node:http";
import { kitModel } from "./apis.js";
import type { GatewayStage } from "./gateway-stage.js";
import { json, KitUpstream } from "./kit-upstream.js";

/** A requirement on every model gateway, for each API that it supports. */
export interface GatewayCheck {
  readonly title: string;
  check(stage: GatewayStage): Promise<void>;
}

/** Requests of agents that try to reach more than their model. */
const strayPaths = [
  "/",
  "/admin",
  "/v1/../admin",
  "/v1/messages/../../admin",
  "/v1/%2e%2e/admin",
  "/v1%2fmessages",
  "//evil.test/v1/messages",
  "/v1/files",
  "/v1/messages/batches",
  "/v1/organizations",
  "/v1beta/files",
  "/v1/messages%00",
  "/v1/responses/..%5cadmin",
  "/v1beta/models/..%2fkeys:generateContent",
];
const strayMethods = ["DELETE", "PUT", "PATCH", "OPTIONS"];

const maxBufferedBytes = 32 * 1024 * 1024;

export const gatewayChecks: readonly GatewayCheck[] = [
  {
    title: "carries a call with the real credential, and returns the model's response",
    check: async (stage) => {
      const { api, key, upstream, route } = stage;
      const { status, text } = await stage.send();
      assert.equal(status, 200);
      assert.deepEqual(JSON.parse(text), api.answer);
      const [seen] = upstream.requests;
      const [name, prefix] = api.keyHeader;
      assert.equal(seen?.url, api.path);
      assert.equal(seen?.headers[name], `${prefix}${key}`);
      assert.ok(!JSON.stringify(seen).includes(route.key), "the endpoint got the token of the run");
      assert.deepEqual(stage.ends, [undefined]);
      assert.ok(
        stage.decisions.some(({ allowed }) => allowed),
        "no decision was recorded",
      );
    },
  },
  {
    title: "counts the usage that the provider reports",
    check: async (stage) => {
      await stage.send();
      assert.deepEqual(stage.used, { input: 100, cached: 40, output: 7 });
      assert.equal(stage.usage[0]?.model, kitModel);
    },
  },
  {
    title: "streams a response as it arrives",
    check: async (stage) => {
      let finish = () => {};
      stage.upstream.answer = (response) => {
        response.writeHead(200, { "content-type": "text/event-stream" }).write("data: {}\n\n");
        finish = () => response.end("data: [DONE]\n\n");
      };
      const response = await stage.begin();
      // The rest is sent only after this has arrived.
      const [first] = await once(response, "data");
      assert.equal(String(first), "data: {}\n\n");
      finish();
      await once(response, "end");
    },
  },
  {
    title: "accepts only its own key",
    check: async (stage) => {
      for (const key of [null, "", stage.key, `${stage.route.key}x`]) {
        assert.equal((await stage.send({ key })).status, 401);
      }
      assert.deepEqual(stage.upstream.requests, []);
    },
  },
  {
    title: "refuses and records every other path and method",
    check: async (stage) => {
      const stray = [...strayPaths.map((path) => ({ path })), ...strayMethods.map((method) => ({ method }))];
      for (const one of stray) {
        const { status } = await stage.send(one);
        assert.ok(status >= 400 && status < 500, `${JSON.stringify(one)} got ${status}`);
      }
      assert.deepEqual(stage.upstream.requests, [], "a stray request reached the endpoint");
      assert.equal(stage.refused.length, stray.length, "not every refusal was recorded");
    },
  },
  {
    title: "passes on no credential, cookie or host of the agent",
    check: async (stage) => {
      const headers = {
        cookie: "a=b",
        host: "evil.test",
        "x-forwarded-host": "evil.test",
        "proxy-authorization": "x",
      };
      await stage.send({ headers, path: stage.api.path });
      const [seen] = stage.upstream.requests;
      assert.equal(seen?.headers.host, new URL(stage.upstream.origin).host);
      assert.ok(!JSON.stringify(seen).includes("evil.test"), "the endpoint got a host of the agent's");
      assert.equal(seen?.headers.cookie, undefined);
      assert.equal(seen?.headers["proxy-authorization"], undefined);
    },
  },
  {
    title: "never follows a redirect with the credential",
    check: async (stage) => {
      await using lure = await KitUpstream.open((response) => json(response, 200, {}));
      stage.upstream.answer = (response) =>
        response.writeHead(307, { location: `${lure.origin}/v1/messages` }).end();
      const { status, headers } = await stage.send();
      assert.equal(status, 502);
      assert.equal(headers.location, undefined);
      assert.deepEqual(lure.requests, []);
    },
  },
  {
    title: "removes a credential that the endpoint repeats from the response, even across two pieces",
    check: async (stage) => {
      let sent = "";
      stage.upstream.answer = async (response, seen) => {
        const [name] = stage.api.keyHeader;
        const repeated = String(seen.headers[name]);
        sent = `{"error":{"message":"${repeated}"},"key":"${Buffer.from(stage.key).toString("base64")}"}`;
        response.writeHead(200, { "content-type": "application/json", "request-id": repeated });
        await piecemeal(response, sent);
      };
      const { text, headers } = await stage.send();
      assert.ok(sent.includes(stage.key), "the control: the endpoint didn't repeat the credential");
      assert.equal(text.length, sent.length);
      for (const form of [stage.key, Buffer.from(stage.key).toString("base64")]) {
        assert.ok(!text.includes(form), "the credential came back in the body");
        assert.ok(!JSON.stringify(headers).includes(form), "the credential came back in a header");
      }
    },
  },
  {
    title: "refuses another model than the run's, and a repeated model",
    check: async (stage) => {
      const { api } = stage;
      const other = { path: api.pathOf("kit-model-10"), body: api.body("kit-model-10") };
      assert.equal((await stage.send(other)).status, 403);
      if (api.namesModelInBody) {
        const twice = `{"model":"${kitModel}","mod\\u0065l":"kit-model-10"}`;
        assert.ok((await stage.send({ body: twice })).status >= 400, "two models were carried");
      }
      assert.deepEqual(stage.upstream.requests, []);
    },
  },
  {
    title: "asks the run for admission before it sends",
    check: async (stage) => {
      stage.admission = { allowed: false, status: 402, reason: "the budget is used up" };
      const { status, text } = await stage.send();
      assert.equal(status, 402);
      assert.match(text, /the budget is used up/);
      assert.deepEqual(stage.upstream.requests, []);
    },
  },
  {
    title: "ends the request to the model when the agent leaves",
    check: async (stage) => {
      stage.upstream.answer = (response) =>
        response.writeHead(200, { "content-type": "text/event-stream" }).write("data: {}\n\n");
      const response = await stage.begin();
      response.on("error", () => undefined).destroy();
      await stage.upstream.requests[0]?.closed;
    },
  },
  {
    title: "ends everything when its scope closes",
    check: async (stage) => {
      stage.upstream.answer = (response) =>
        response.writeHead(200, { "content-type": "text/event-stream" }).write("data: {}\n\n");
      const response = await stage.begin();
      const cut = new Promise((resolve) =>
        response
          .on("error", () => undefined)
          .resume()
          .once("close", resolve),
      );
      await stage.scope.close();
      await stage.upstream.requests[0]?.closed;
      await cut;
      await assert.rejects(stage.send());
    },
  },
  {
    title: "reads an endless response no faster than the agent",
    check: async (stage) => {
      let written = 0;
      const piece = Buffer.alloc(64 * 1024, "x");
      stage.upstream.answer = async (response) => {
        response.writeHead(200, { "content-type": "text/event-stream" });
        while (written < maxBufferedBytes && !response.destroyed) {
          written += piece.length;
          if (response.write(piece)) continue;
          await Promise.race([once(response, "drain"), stalled()]);
          if (response.writableNeedDrain) return;
        }
      };
      const response = await stage.begin();
      await stalled();
      assert.ok(written < maxBufferedBytes, `${written} bytes were taken from the model, and none was read`);
      response.on("error", () => undefined).destroy();
    },
  },
  {
    title: "reports to the run how the model failed, and whether that is retryable",
    check: async (stage) => {
      for (const status of [401, 429, 503]) {
        stage.upstream.answer = (response) => json(response, status, { error: { message: "no luck" } });
        assert.equal((await stage.send()).status, status);
      }
      stage.upstream.answer = (response) => response.destroy();
      assert.equal((await stage.send()).status, 502);
      const outcomes = stage.ends.map((end) => [end?.status, end?.retryable]);
      assert.deepEqual(outcomes, [
        [401, false],
        [429, true],
        [503, true],
        [undefined, true],
      ]);
      assert.match(stage.ends[0]?.message ?? "", /no luck/);
      assert.deepEqual(stage.used, { input: 0, cached: 0, output: 0 });
    },
  },
];

/** Longer than a piece takes on loopback, so that a blocked writer is noticed. */
function stalled(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, 300));
}

/** A few bytes at a time, each in a separate packet. */
async function piecemeal(response: ServerResponse, text: string): Promise<void> {
  for (let at = 0; at < text.length; at += 7) {
    response.write(text.slice(at, at + 7));
    await new Promise((resolve) => setImmediate(resolve));
  }
  response.end();
}

import { createHash, createHmac, createVerify, generateKeyPairSync } from "node:crypto";
import type { IncomingHttpHeaders, ServerResponse } from "node:http";
import { SignatureV4 } from "@smithy/signature-v4";
import { describe, expect, it } from "vitest";
import { configSchema, ModelRouteGateway } from "../src/index.js";
import { accountIn, accountTokens } from "../src/protocols/service-account.js";
import { routeTo, serving, useOf } from "./support/stage.js";

const gateway = new ModelRouteGateway(configSchema.parse({}));
const model = "eu.anthropic.claude-x-v1:0";
const secretAccessKey = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY";
const keys = { AWS_ACCESS_KEY_ID: "AKIDEXAMPLE000", AWS_SECRET_ACCESS_KEY: secretAccessKey };

interface Seen {
  readonly method: string;
  readonly url: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

async function endpoint(answer: (response: ServerResponse, seen: Seen) => unknown) {
  const requests: Seen[] = [];
  const origin = await serving(async (request, response) => {
    const parts: Buffer[] = [];
    for await (const part of request) parts.push(part);
    const { method = "", url = "", headers } = request;
    const seen = { method, url, headers, body: Buffer.concat(parts).toString() };
    requests.push(seen);
    await answer(response, seen);
  });
  return { origin, requests };
}

/** AWS's own client for the same request, whose signature must be equal. */
async function signatureOf({ method, url, headers, body }: Seen): Promise<string | undefined> {
  class Sha256 {
    readonly #hash;
    constructor(secret?: string | ArrayBuffer | ArrayBufferView) {
      this.#hash = secret === undefined ? createHash("sha256") : createHmac("sha256", asBytes(secret));
    }
    update(data: string | ArrayBuffer | ArrayBufferView) {
      this.#hash.update(asBytes(data));
    }
    async digest() {
      return new Uint8Array(this.#hash.digest());
    }
    reset() {}
  }
  const signer = new SignatureV4({
    service: "bedrock",
    region: "eu-west-1",
    sha256: Sha256,
    credentials: { accessKeyId: keys.AWS_ACCESS_KEY_ID, secretAccessKey, sessionToken: "session-token" },
  });
  const signed = String(headers.authorization?.split("SignedHeaders=")[1]?.split(",")[0]).split(";");
  const date = String(headers["x-amz-date"]).replace(/(....)(..)(..)T(..)(..)(..)Z/, "$1-$2-$3T$4:$5:$6Z");
  const kept = signed
    .filter((name) => name !== "x-amz-date" && name !== "x-amz-security-token")
    .map((name) => [name, String(headers[name])]);
  const { headers: result } = await signer.sign(
    {
      method,
      protocol: "http:",
      hostname: "127.0.0.1",
      path: url,
      query: {},
      body,
      headers: Object.fromEntries(kept),
    },
    { signingDate: new Date(date) },
  );
  return result.authorization;
}

function asBytes(data: string | ArrayBuffer | ArrayBufferView): Buffer {
  if (typeof data === "string") return Buffer.from(data);
  return ArrayBuffer.isView(data)
    ? Buffer.from(data.buffer, data.byteOffset, data.byteLength)
    : Buffer.from(data);
}

const bedrockUse = (origin: string) =>
  useOf({
    protocol: "bedrock",
    endpoint: origin,
    model,
    region: "eu-west-1",
    credentials: { ...keys, AWS_SESSION_TOKEN: "session-token" },
  });

describe("Bedrock", () => {
  it("gets requests that are signed outside, with the same signature as AWS's own client", async () => {
    const { origin, requests } = await endpoint((response) =>
      response
        .writeHead(200, { "content-type": "application/json" })
        .end('{"usage":{"input_tokens":3,"output_tokens":4}}'),
    );
    const { send, total } = routeTo(bedrockUse(origin));
    const body = JSON.stringify({
      anthropic_version: "bedrock-2023-05-31",
      messages: [{ role: "user", content: `é${"x".repeat(70_000)}` }],
    });
    const response = await send(body, `/model/${encodeURIComponent(model)}/invoke`, {
      headers: { authorization: "Bearer of-the-run", "content-type": "application/json" },
    });
    expect(response.status).toBe(200);
    expect(await response.json()).toEqual({ usage: { input_tokens: 3, output_tokens: 4 } });
    const [seen] = requests;
    if (seen === undefined) return expect.unreachable();
    expect(seen.headers["x-amz-security-token"]).toBe("session-token");
    expect(seen.headers.authorization).toBe(await signatureOf(seen));
    expect(JSON.stringify(seen)).not.toContain(secretAccessKey);
    expect(total()).toMatchObject({ input: 3, output: 4 });
  });

  it("counts a stream's tokens in AWS's binary messages, in any chunks", async () => {
    const wrap = (value: object) => message({ bytes: Buffer.from(JSON.stringify(value)).toString("base64") });
    const stream = Buffer.concat([
      wrap({ type: "message_start", message: { usage: { input_tokens: 20, output_tokens: 1 } } }),
      wrap({ type: "content_block_delta", delta: { text: '"usage":{"output_tokens":999}' } }),
      message({ text: "x".repeat(2_000_000) }),
      wrap({ type: "message_delta", usage: { output_tokens: 8 } }),
      wrap({
        type: "message_stop",
        "amazon-bedrock-invocationMetrics": { inputTokenCount: 20, outputTokenCount: 9 },
      }),
    ]);
    for (const size of [5, 1_000, stream.length]) {
      const { origin } = await endpoint((response) => {
        response.writeHead(200, { "content-type": "application/vnd.amazon.eventstream" });
        const cut = size === 5 ? 5_000 : size;
        for (let at = 0; at < stream.length; at += cut) response.write(stream.subarray(at, at + cut));
        response.end();
      });
      const { send, total } = routeTo(bedrockUse(origin));
      const response = await send("{}", `/model/${encodeURIComponent(model)}/invoke-with-response-stream`);
      expect(Buffer.from(await response.arrayBuffer()).equals(stream)).toBe(true);
      expect(total()).toMatchObject({ input: 20, output: 9 });
    }
  });

  it.each([
    "/model/x%2F..%2Fy/invoke",
    "/model/..%2Fadmin/invoke",
    "/model/a%00b/invoke",
    "/model/a/b/invoke",
    "/guardrails",
  ])("refuses %s", async (path) => {
    const { origin, requests } = await endpoint((response) => response.end());
    expect((await routeTo(bedrockUse(origin)).send("{}", path)).status).toBe(404);
    expect(requests).toEqual([]);
  });

  it("needs keys and a region, or a token", () => {
    const paths = (changes: object) =>
      gateway
        .issues({ ...bedrockUse("https://bedrock-runtime.eu-west-1.amazonaws.com"), ...changes })
        .map(({ path }) => path);
    expect(paths({})).toEqual([]);
    expect(paths({ credentials: { AWS_ACCESS_KEY_ID: "a" } })).toEqual(["modelConnection.credentials"]);
    expect(paths({ region: "evil.com/" })).toEqual(["modelConnection.endpoint.region"]);
    expect(paths({ region: undefined, credentials: { AWS_BEARER_TOKEN_BEDROCK: "t" } })).toEqual([]);
  });
});

describe("Vertex", () => {
  const { privateKey, publicKey } = generateKeyPairSync("rsa", { modulusLength: 2_048 });
  const account = (token_uri: string) =>
    JSON.stringify({
      type: "service_account",
      client_email: "robot@project.example",
      private_key_id: "key-1",
      token_uri,
      private_key: privateKey.export({ type: "pkcs8", format: "pem" }),
    });
  const path = "/v1/projects/p-1/locations/europe-west1/publishers/anthropic/models/m-1:streamRawPredict";

  it("gets an access token that is fetched outside with the account's key, and is never passed back", async () => {
    const accessToken = "ya29.access-token-0123456789";
    const tokens = await endpoint((response, { body }) => {
      const assertion = String(new URLSearchParams(body).get("assertion"));
      const [header = "", claims = "", signature = ""] = assertion.split(".");
      const verify = createVerify("RSA-SHA256").update(`${header}.${claims}`);
      const isGenuine = verify.verify(publicKey, signature, "base64url");
      expect(JSON.parse(Buffer.from(claims, "base64url").toString())).toMatchObject({
        iss: "robot@project.example",
        scope: "https://www.googleapis.com/auth/cloud-platform",
        aud: expect.stringContaining("/token"),
      });
      response
        .writeHead(isGenuine ? 200 : 401)
        .end(JSON.stringify({ access_token: accessToken, expires_in: 3_600 }));
    });
    const { origin, requests } = await endpoint((response, { headers }) =>
      response
        .writeHead(200, { "content-type": "application/json" })
        .end(JSON.stringify({ echo: headers.authorization })),
    );
    const credentials = { GOOGLE_APPLICATION_CREDENTIALS: account(`${tokens.origin}/token`) };
    const use = useOf({ protocol: "vertex", basePath: "/v1", endpoint: `${origin}/v1`, credentials });
    expect(gateway.issues(use)).toEqual([]);
    const { send } = routeTo(use);
    const answers = await Promise.all([1, 2].map(async () => await (await send("{}", path)).text()));
    expect(requests.map(({ url, headers }) => [url, headers.authorization])).toEqual([
      [path, `Bearer ${accessToken}`],
      [path, `Bearer ${accessToken}`],
    ]);
    expect(answers.join()).not.toContain(accessToken);
    expect(tokens.requests).toHaveLength(1);
  });

  it("fetches the next token shortly before one expires", async () => {
    let count = 0;
    const { origin } = await endpoint((response) => {
      count += 1;
      response.end(JSON.stringify({ access_token: `token-${count}`, expires_in: 600 }));
    });
    const read = accountIn(account(`${origin}/token`), origin);
    if (typeof read === "string") return expect.unreachable(read);
    let now = Date.now();
    const tokens = accountTokens(
      read,
      () => ({}),
      () => now,
    );
    expect([await tokens.current(), await tokens.current()]).toEqual(["token-1", "token-1"]);
    now += 301_000;
    expect(await tokens.current()).toBe("token-2");
  });

  it("fetches another token after the provider refused one, as when it was revoked", async () => {
    let count = 0;
    const tokens = await endpoint((response) => {
      count += 1;
      response.end(JSON.stringify({ access_token: `token-${count}-of-the-account`, expires_in: 3_600 }));
    });
    const { origin, requests } = await endpoint((response, { headers }) => {
      const isRevoked = headers.authorization === "Bearer token-1-of-the-account";
      response.writeHead(isRevoked ? 401 : 200, { "content-type": "application/json" }).end("{}");
    });
    const credentials = { GOOGLE_APPLICATION_CREDENTIALS: account(`${tokens.origin}/token`) };
    const use = useOf({ protocol: "vertex", basePath: "/v1", endpoint: `${origin}/v1`, credentials });
    const { send } = routeTo(use);
    const statuses: number[] = [];
    for (let index = 0; index < 3; index += 1) {
      const { status, body } = await send("{}", path);
      await body?.cancel();
      statuses.push(status);
    }
    expect(statuses).toEqual([401, 200, 200]);
    expect(requests.map(({ headers }) => headers.authorization)).toEqual([
      "Bearer token-1-of-the-account",
      "Bearer token-2-of-the-account",
      "Bearer token-2-of-the-account",
    ]);
  });

  it("an account that gets no token is a permanent failure of the model", async () => {
    const { origin } = await endpoint((response) => response.writeHead(400).end("{}"));
    const { send, ends } = routeTo(
      useOf({
        protocol: "vertex",
        credentials: { GOOGLE_APPLICATION_CREDENTIALS: account(`${origin}/token`) },
      }),
    );
    expect((await send("{}", path)).status).toBe(502);
    expect(ends).toMatchObject([{ retryable: false, message: expect.stringContaining("400") }]);
  });

  it.each([
    ["/home/agent/key.json", "not its path"],
    [account("https://evil.example/token"), "isn't Google's"],
    [account("http://169.254.169.254/token"), "isn't Google's"],
    [JSON.stringify({ type: "authorized_user", refresh_token: "r" }), "isn't a service account's key"],
  ])("refuses a credential such as %.20s", (credential, words) => {
    const use = useOf({ protocol: "vertex", credentials: { GOOGLE_APPLICATION_CREDENTIALS: credential } });
    expect(gateway.issues(use)).toMatchObject([{ message: expect.stringContaining(words) }]);
  });
});

/** One message: lengths and checksums as placeholders of their sizes. */
function message(payload: object): Buffer {
  const body = Buffer.from(JSON.stringify(payload));
  const headers = Buffer.from("0b3a6576656e742d74797065070005", "hex");
  const total = 12 + headers.length + body.length + 4;
  const prelude = Buffer.alloc(12);
  prelude.writeUInt32BE(total, 0);
  prelude.writeUInt32BE(headers.length, 4);
  return Buffer.concat([prelude, headers, body, Buffer.alloc(4)]);
}

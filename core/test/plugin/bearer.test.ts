import { describe, expect, it } from "vitest";
import { newToken, requireBearer } from "../../src/plugin/index.js";

const token = newToken();
const guarded = requireBearer(token, () => new Response("open"));
const ask = async (headers: Record<string, string>) =>
  (await guarded(new Request("http://127.0.0.1/", { headers }))).status;

describe("an exposure's token", () => {
  it.each<Record<string, string>>([
    { authorization: `Bearer ${token}` },
    { authorization: `bearer ${token}` },
    { "x-api-key": token },
    { "x-goog-api-key": token },
    { authorization: "Bearer another", "x-api-key": token },
  ])("is taken as a bearer or as an API key: %o", async (headers) => {
    expect(await ask(headers)).toBe(200);
  });

  it.each<Record<string, string>>([
    {},
    { authorization: token },
    { authorization: `Basic ${token}` },
    { authorization: "Bearer " },
    { "x-api-key": "" },
    { "x-api-key": `${token}, ${token}` },
    { "x-api-key": token.slice(0, -1) },
    { cookie: `x-api-key=${token}` },
  ])("and nothing else opens it: %o", async (headers) => {
    expect(await ask(headers)).toBe(401);
  });
});

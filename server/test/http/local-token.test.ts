import { readFile } from "node:fs/promises";
import { describe, expect, it } from "vitest";
import { connect } from "../../src/cli/server-client.js";
import { takeEnvironment } from "../../src/configuration/environment.js";
import { saying } from "../support/scripted-agent.js";
import { asking, serveScript } from "../support/server.js";

describe("a server without a configured token", () => {
  it("admits only callers that send the token that it made", async () => {
    const { server, post, url } = await serveScript(saying("x"), { auth: "token" });
    const token = server.localToken?.token ?? "";
    expect((await readFile(server.localToken?.file ?? "", "utf8")).trim()).toBe(token);
    const refused = await post("/run", asking);
    expect(refused.status).toBe(401);
    expect(await refused.json()).toMatchObject({ error: expect.stringContaining("ambit token --local") });
    expect((await post("/run", asking, { authorization: "Bearer local_other" })).status).toBe(401);
    expect((await post("/run", asking, { authorization: `Bearer ${token}` })).status).toBe(200);
    expect((await fetch(`${url}/health`)).status).toBe(200);
  });

  it("is reached by the command line without a setting", async () => {
    const { url, server } = await serveScript(saying("x"), { auth: "token" });
    const client = connect({ url }, takeEnvironment({}));
    expect(await client.plugins()).toMatchObject({ actors: expect.any(Array) });
    await server.close();
    await expect(client.plugins()).rejects.toThrow("no server answers");
  });

  it("refuses a run's process even with that token, which it may have read", async () => {
    const { server, post } = await serveScript(saying("x"), {
      auth: "token",
      madeConnection: async () => true,
    });
    const headers = { authorization: `Bearer ${server.localToken?.token}` };
    expect((await post("/run", asking, headers)).status).toBe(403);
  });

  it("needs none if the deployer says so, on loopback only", async () => {
    const none = { configuration: { server: { auth: "none" as const } } };
    const { post, server } = await serveScript(saying("x"), { ...none, auth: "token" });
    expect(server.localToken).toBeUndefined();
    expect((await post("/run", asking)).status).toBe(200);
    const reachable = { configuration: { server: { auth: "none" as const, host: "0.0.0.0" } } };
    await expect(serveScript(saying("x"), reachable)).rejects.toThrow(
      'is "none", but 0.0.0.0 can be reached',
    );
    await expect(serveScript(saying("x"), { ...none, token: "s3cret" })).rejects.toThrow(
      "a token is configured",
    );
  });
});

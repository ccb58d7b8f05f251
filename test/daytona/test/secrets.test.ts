import { describe, expect, it } from "vitest";
import { output, useLoopback } from "./loopback.js";

describe("an organisation's secrets", () => {
  const fixture = useLoopback({
    world: [{ name: "api.allowed.test" }, { name: "other.test" }],
  });

  it("are created, listed without a value, found and deleted", async () => {
    const { daytona } = fixture();
    const secret = await daytona.secret.create({
      name: "listed",
      value: "hidden-value",
      hosts: ["api.allowed.test"],
    });
    expect(secret.placeholder).toMatch(/^dtn_secret_/);
    await expect(daytona.secret.create({ name: "listed", value: "x" })).rejects.toMatchObject({
      statusCode: 409,
    });
    const { items, total } = await daytona.secret.list();
    expect(total).toBe(1);
    expect(JSON.stringify(items)).not.toContain("hidden-value");
    expect((await daytona.secret.get(secret.id)).name).toBe("listed");
    await daytona.secret.delete(secret.id);
    await expect(daytona.secret.get(secret.id)).rejects.toMatchObject({ statusCode: 404 });
  });

  it("are placeholders in the sandbox, and arrive only at their hosts", async () => {
    const { daytona, loopback } = fixture();
    const value = "sk-real-value";
    const secret = await daytona.secret.create({ name: "model", value, hosts: ["api.allowed.test"] });
    const sandbox = await daytona.create({
      snapshot: "ambit",
      domainAllowList: "api.allowed.test,other.test",
      secrets: { API_KEY: "model" },
    });
    expect(await output(sandbox, "printenv API_KEY")).toBe(secret.placeholder);
    expect(await output(sandbox, `grep -rl ${value} /proc/*/environ /root /etc 2>/dev/null | head -1`)).toBe(
      "",
    );
    for (const host of ["api.allowed.test", "other.test"])
      await output(sandbox, `curl -s -m 2 -H "x-api-key: $API_KEY" "http://${host}/?key=$API_KEY"`);
    const arrived = loopback.world
      .requests()
      .map(({ host, url, headers }) => [host, headers["x-api-key"], url]);
    expect(arrived).toEqual([
      ["api.allowed.test", value, `/?key=${value}`],
      ["other.test", secret.placeholder, `/?key=${secret.placeholder}`],
    ]);
    expect(loopback.secrets()).toMatchObject([{ name: "model", value, placeholder: secret.placeholder }]);

    await daytona.secret.delete(secret.id);
    loopback.world.clear();
    await output(sandbox, 'curl -s -m 2 -H "x-api-key: $API_KEY" http://api.allowed.test/');
    expect(loopback.world.requests()).toMatchObject([{ headers: { "x-api-key": secret.placeholder } }]);
  });

  it("don't open a blocked network", async () => {
    const { daytona } = fixture();
    await daytona.secret.create({ name: "blocked", value: "v" });
    const sandbox = await daytona.create({
      snapshot: "ambit",
      networkBlockAll: true,
      secrets: { KEY: "blocked" },
    });
    expect(await output(sandbox, "curl -s -m 1 http://10.99.0.2/ || echo blocked")).toBe("blocked");
  });

  it("that don't exist are refused at create", async () => {
    const { daytona } = fixture();
    await expect(daytona.create({ snapshot: "ambit", secrets: { KEY: "nowhere" } })).rejects.toMatchObject({
      statusCode: 404,
    });
  });
});

import { says } from "@ambit/fakes/harness";
import { afterEach, describe, expect, onTestFinished, test, vi } from "vitest";
import type { CredentialRefreshService } from "../../../src/index.js";
import { RefreshFailed } from "../../../src/index.js";
import { FakeWorkspaces } from "../../fakes/workspaces.js";
import { createWorld, type WorldOptions } from "../../fakes/world.js";

const fresh = `ghs_${"ccccdddd".repeat(5)}`;
const inAnHour = () => new Date(Date.now() + 3_600_000).toISOString();
const refresh = {
  url: "https://platform.example.test/mint/0123456789abcdef01234567",
  authorization: "Bearer platform-key",
  expiresAt: "2026-01-01T00:00:00Z",
};
const credential = {
  name: "GIT_TOKEN",
  value: `ghp_${"aaaabbbb".repeat(5)}`,
  hosts: ["git.example.test"],
  as: "basic",
  refresh,
};
const named = {
  sessionId: "one",
  sandboxPermission: { network: { allowlist: ["git.example.test"] } },
  credentials: [credential],
};

type Asked = Parameters<CredentialRefreshService["ask"]>[0];
type Answer = (asked: Asked, signal: AbortSignal) => ReturnType<CredentialRefreshService["ask"]>;
const minted =
  (body: unknown, status = 200): Answer =>
  async () => ({ status, body: JSON.stringify(body) });

/** A runner whose platform answers so. */
async function openWorld(answer: Answer, more: WorldOptions = {}) {
  const asked: Asked[] = [];
  const logged: (readonly string[])[] = [];
  const service: CredentialRefreshService = {
    whyRefused: ({ hostname }) => (hostname === "refused.test" ? "the operator closed it" : undefined),
    ask: (request, signal) => {
      asked.push(request);
      return answer(request, signal);
    },
  };
  const world = await createWorld({
    script: says("ok"),
    sandbox: { placeholders: { GIT_TOKEN: "placeholder-1" } },
    rules: { credentialRefresh: service, workspaces: new FakeWorkspaces() },
    hideSecrets: (secrets) => {
      logged.push(secrets);
      return () => void logged.splice(logged.indexOf(secrets), 1);
    },
    ...more,
  });
  onTestFinished(() => world[Symbol.asyncDispose]());
  const askNow = () => world.sandbox.specs.at(-1)?.refreshSecret?.("GIT_TOKEN");
  return { world, asked, logged, askNow };
}

afterEach(() => void vi.useRealTimers());

describe("a session asks the platform for a new value", () => {
  test("with the names of credential, session and run, and the run's output is redacted of it", async () => {
    const opened = await openWorld(minted({ value: fresh, expiresAt: inAnHour(), more: true }), {
      script: async function* () {
        yield { type: "message_start", id: "m" };
        yield { type: "message_delta", id: "m", delta: "before " };
        const refreshed = await opened.askNow();
        expect(refreshed).toMatchObject({ ok: true, value: fresh, known: { GIT_TOKEN: [fresh] } });
        expect(opened.logged.some((secrets) => secrets.includes(fresh))).toBe(true);
        yield { type: "message_delta", id: "m", delta: `${fresh} ${btoa(fresh)} ${credential.value}` };
        yield { type: "message_end", id: "m" };
        yield { type: "done" };
      },
    });
    const { result, events, run } = await opened.world.run(named, true);
    expect(result).toMatchObject({ ok: true, output: "before [redacted] [redacted]= [redacted]" });
    const { url, authorization, body } = opened.asked[0] ?? {};
    expect(String(url)).toBe(refresh.url);
    expect(authorization).toBe(refresh.authorization);
    expect(JSON.parse(body ?? "")).toEqual({ name: "GIT_TOKEN", sessionId: "one", runId: run.id });
    const told = JSON.stringify([result, events, opened.world.log.lines]);
    for (const text of [fresh, credential.value, "platform-key", refresh.url])
      expect(told).not.toContain(text);
  });

  test("also between two runs, and the next one is redacted of it", async () => {
    const { world, asked, askNow } = await openWorld(minted({ value: fresh, expiresAt: inAnHour() }), {
      script: [says("ok"), says(`it is ${fresh}`)],
    });
    await world.run(named);
    expect(await askNow()).toMatchObject({ ok: true });
    expect(JSON.parse(asked[0]?.body ?? "")).toEqual({ name: "GIT_TOKEN", sessionId: "one" });
    const { result } = await world.run(named);
    expect(result).toMatchObject({ output: "it is [redacted]" });
    expect(world.sandbox.opened).toBe(1);
  });

  test("in a new sandbox when the callback changes, as with a changed value", async () => {
    const { world } = await openWorld(minted({ value: fresh, expiresAt: inAnHour() }));
    await world.run(named);
    await world.run(named);
    expect(world.sandbox.opened).toBe(1);
    const other = { ...credential, refresh: { ...refresh, authorization: "Bearer another-key" } };
    const { result } = await world.run({ ...named, credentials: [other] });
    expect(result).toMatchObject({ ok: true });
    expect(world.sandbox).toMatchObject({ opened: 2, closed: 1 });
  });

  test("and forgets the oldest values, of the run and of the log too", async () => {
    let count = 0;
    const valueAt = (index: number) => `value-number-${String(index).padStart(8, "0")}`;
    const answer: Answer = async () => {
      count += 1;
      return { status: 200, body: JSON.stringify({ value: valueAt(count), expiresAt: inAnHour() }) };
    };
    const opened = await openWorld(answer, {
      script: async function* (turn) {
        for (let index = 0; index < 40; index += 1) await opened.askNow();
        yield* says(`${valueAt(40)} ${valueAt(32)} ${valueAt(1)} ${credential.value}`)(turn);
      },
    });
    const { result } = await opened.world.run(named);
    expect(result.output).toBe(`[redacted] [redacted] ${valueAt(1)} [redacted]`);
    expect(opened.logged.length).toBeLessThan(4);
    expect(opened.logged.flat().filter((secret) => secret.startsWith("value-number-"))).toHaveLength(9);
  });
});

describe("a new value is refused", () => {
  test.each<[string, Answer, string]>([
    ["with another status", minted({ value: fresh, expiresAt: inAnHour() }, 503), "answered with HTTP 503"],
    ["if the response is a redirect", minted({}, 302), "answered with HTTP 302"],
    ["if it isn't JSON", async () => ({ status: 200, body: fresh }), "answered with no JSON"],
    ["if it is no object", minted([fresh]), "answered with no valid object"],
    ["without an expiry", minted({ value: fresh }), "answered with no valid expiresAt"],
    ["if it is too short", minted({ value: "short", expiresAt: inAnHour() }), "answered with no valid value"],
    ["if it is too long", minted({ value: "x".repeat(4_097), expiresAt: inAnHour() }), "no valid value"],
    ["with a line break", minted({ value: `${fresh}\nx: y`, expiresAt: inAnHour() }), "no valid value"],
    [
      "if it expires at once",
      minted({ value: fresh, expiresAt: new Date(Date.now() + 9_000).toISOString() }),
      "a value that is valid for less than 10 s",
    ],
    [
      "if the platform can't be reached",
      () => Promise.reject(new RefreshFailed("could not be reached (ECONNREFUSED)")),
      "could not be reached (ECONNREFUSED)",
    ],
    [
      "without the words of an unknown error",
      () => Promise.reject(new Error(`https://platform.example.test/${fresh}`)),
      "could not be reached",
    ],
  ])("%s", async (_when, answer, reason) => {
    const { world, askNow } = await openWorld(answer);
    await world.run(named);
    const refused = await askNow();
    expect(refused).toEqual({ ok: false, reason: expect.stringContaining(reason) });
    expect(JSON.stringify([refused, world.log.lines])).not.toContain(fresh);
  });

  test("after ten seconds without an answer", async () => {
    const { world, askNow } = await openWorld(() => new Promise(() => {}));
    await world.run(named);
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
    const refused = askNow();
    await vi.advanceTimersByTimeAsync(10_000);
    expect(await refused).toEqual({ ok: false, reason: "its platform's callback didn't answer in 10 s" });
  });

  test("when the session is closed meanwhile", async () => {
    let signal: AbortSignal | undefined;
    const { world, askNow, logged } = await openWorld((_asked, given) => {
      signal = given;
      return new Promise(() => {});
    });
    await world.run(named);
    const refused = askNow();
    await world.runner.drain(0);
    expect(await refused).toEqual({ ok: false, reason: expect.stringContaining("the session is closed") });
    expect(signal?.aborted).toBe(true);
    expect(logged).toEqual([]);
  });
});

describe("a request with a callback is refused", () => {
  test("if the operator refuses its address", async () => {
    const { world } = await openWorld(minted({}));
    const other = { ...credential, refresh: { url: "https://refused.test/" } };
    await expect(world.admit({ ...named, credentials: [other] })).rejects.toMatchObject({
      issues: [{ path: "credentials[0].refresh.url", message: "is refused: the operator closed it" }],
    });
  });

  test("by a runner that makes no callbacks", async () => {
    await using world = await createWorld({ sandbox: { placeholders: { GIT_TOKEN: "p" } } });
    await expect(world.admit(named)).rejects.toMatchObject({
      issues: [{ path: "credentials[0].refresh.url" }],
    });
  });
});

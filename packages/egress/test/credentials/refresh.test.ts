import type { RefreshedSecret } from "@ambit/core/plugin";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { openCredentialBroker } from "../../src/credentials/index.js";
import { CredentialExpiry } from "../../src/credentials/values.js";

const second = 1_000;
const hosts = ["git.example.test"];
const start = Date.parse("2026-01-01T00:00:00Z");
const after = (ms: number) => new Date(start + ms).toISOString();

beforeEach(() => void vi.useFakeTimers({ now: start, toFake: ["Date", "performance"] }));
afterEach(() => void vi.useRealTimers());

/** A credential that expires so long after the start, and the questions to its platform. */
function expiring(expiresInMs: number | undefined) {
  const questions: ((answer: RefreshedSecret) => void)[] = [];
  const taken: string[] = [];
  const refresh = {
    url: "https://platform.example.test/mint",
    ...(expiresInMs === undefined ? {} : { expiresAt: after(expiresInMs) }),
  };
  const expiry = new CredentialExpiry(
    { name: "TOKEN", value: "value-0000", hosts, refresh },
    () => new Promise((resolve) => questions.push(resolve)),
    ({ value }) => taken.push(value),
  );
  const ready = async () => {
    await expiry.refreshed();
    return expiry.whyUnusable;
  };
  const answer = (value: string, validMs: number) =>
    questions.at(-1)?.({ ok: true, value, expiresAt: Date.now() + validMs, known: {} });
  const fail = (reason: string) => questions.at(-1)?.({ ok: false, reason });
  return { questions, taken, ready, answer, fail };
}

describe("a credential that expires", () => {
  test("is used without a question until a minute before it expires", async () => {
    const { questions, ready } = expiring(600 * second);
    expect(await ready()).toBeUndefined();
    vi.advanceTimersByTime(539 * second);
    expect(await ready()).toBeUndefined();
    expect(questions).toHaveLength(0);
    vi.advanceTimersByTime(second);
    void ready();
    expect(questions).toHaveLength(1);
  });

  test("is used for half of a short life, and never within five seconds of its end", async () => {
    const { questions, ready, answer } = expiring(40 * second);
    vi.advanceTimersByTime(19 * second);
    expect(await ready()).toBeUndefined();
    expect(questions).toHaveLength(0);
    vi.advanceTimersByTime(second);
    const waiting = ready();
    answer("value-1111", 8 * second);
    await waiting;
    vi.advanceTimersByTime(2 * second);
    expect(await ready()).toBeUndefined();
    expect(questions).toHaveLength(1);
    vi.advanceTimersByTime(second);
    void ready();
    expect(questions).toHaveLength(2);
  });

  test("is asked for once by all requests that wait", async () => {
    const { questions, taken, ready, answer } = expiring(-second);
    const waiting = Array.from({ length: 20 }, ready);
    expect(questions).toHaveLength(1);
    answer("value-1111", 3_600 * second);
    expect(await Promise.all(waiting)).toEqual(Array.from({ length: 20 }, () => undefined));
    expect(taken).toEqual(["value-1111"]);
    expect(await ready()).toBeUndefined();
    expect(questions).toHaveLength(1);
  });

  test("is used until it expires if its platform fails, which is asked again after five seconds", async () => {
    const { questions, ready, fail, answer } = expiring(100 * second);
    vi.advanceTimersByTime(90 * second);
    const first = ready();
    fail("no answer");
    expect(await first).toBeUndefined();
    vi.advanceTimersByTime(4 * second);
    expect(await ready()).toBeUndefined();
    expect(questions).toHaveLength(1);
    vi.advanceTimersByTime(second);
    const next = ready();
    expect(questions).toHaveLength(2);
    fail("HTTP 500");
    expect(await next).toBeUndefined();
    vi.advanceTimersByTime(second);
    // It has lived 96 of 100 seconds, and is refused from 100 on.
    expect(await ready()).toBeUndefined();
    vi.advanceTimersByTime(3 * second + 999);
    expect(await ready()).toBeUndefined();
    vi.advanceTimersByTime(1);
    expect(await Promise.race([ready(), "asks again"])).toBe("asks again");
    fail("HTTP 500");
    expect(await ready()).toBe("TOKEN has expired, and there is no new value: HTTP 500");
    vi.advanceTimersByTime(5 * second);
    const last = ready();
    answer("value-1111", 3_600 * second);
    expect(await last).toBeUndefined();
  });

  test("is asked for before its first use if its expiry isn't known, and then used if the platform fails", async () => {
    const { questions, ready, fail } = expiring(undefined);
    const waiting = ready();
    expect(questions).toHaveLength(1);
    fail("no answer");
    expect(await waiting).toBeUndefined();
  });

  test("is refused if it expired while the platform was asked", async () => {
    const { ready, fail } = expiring(20 * second);
    vi.advanceTimersByTime(15 * second);
    const waiting = ready();
    vi.advanceTimersByTime(10 * second);
    fail("no answer");
    expect(await waiting).toContain("TOKEN has expired");
  });
});

test("a broker needs a way to ask for new values", async () => {
  const refresh = { url: "https://platform.example.test/mint" };
  const secret = { name: "TOKEN", value: "value-0000", as: "bearer", hosts, refresh } as const;
  await expect(openCredentialBroker([secret])).rejects.toThrow(TypeError);
});

test("two credentials of a request are judged after both have waited", async () => {
  const questions: ((answer: RefreshedSecret) => void)[] = [];
  const secret = (name: string, ms: number) => ({
    name,
    value: `value-of-${name}`,
    hosts,
    refresh: { url: "https://platform.example.test/mint", expiresAt: after(ms) },
  });
  const broker = await openCredentialBroker([secret("ONE", 30 * second), secret("TWO", -second)], {
    refresh: () => new Promise((resolve) => questions.push(resolve)),
  });
  const ready = broker.ready(["ONE", "TWO"]);
  vi.advanceTimersByTime(31 * second);
  questions[0]?.({ ok: true, value: "value-1111", expiresAt: Date.now() + 3_600 * second, known: {} });
  expect(await ready).toBe("ONE has expired, and there is no new value: it expired while the request waited");
});

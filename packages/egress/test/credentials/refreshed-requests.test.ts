// needs: openssl
import type { RefreshedSecret } from "@ambit/core/plugin";
import { afterEach, beforeEach, describe, expect, onTestFinished, test, vi } from "vitest";
import { ask, openWorld, value, type World } from "./brokered.js";

const second = 1_000;
/** The time of now: certificates are checked by it. */
const start = Date.now();
const fresh = `ghs_${"ccccdddd".repeat(5)}`;
const refresh = {
  url: "https://platform.example.test/mint",
  authorization: "Bearer platform-key",
  expiresAt: new Date(start + 600 * second).toISOString(),
};

// Only what tells the time: connections need their timers.
beforeEach(() => void vi.useFakeTimers({ now: start, toFake: ["Date", "performance"] }));
afterEach(() => void vi.useRealTimers());

/** A world whose credential expires in ten minutes, and the questions to its platform. */
async function openRefreshed(listener: Parameters<typeof openWorld>[0] = {}, more = {}) {
  const questions: ((answer: RefreshedSecret) => void)[] = [];
  const world = await openWorld(
    listener,
    { refresh, ...more },
    undefined,
    () => new Promise((resolve) => questions.push(resolve)),
  );
  onTestFinished(() => world.close());
  const answer = (given = fresh) =>
    questions.at(-1)?.({
      ok: true,
      value: given,
      expiresAt: Date.now() + 3_600 * second,
      known: { TOKEN: [given] },
    });
  return { world, questions, answer };
}

const bearer = (world: World) => ({ headers: { authorization: `Bearer ${world.placeholder}` } });
const sentTo = ({ origin }: World) =>
  origin.requests.map(({ headers }) => headers[headers.indexOf("authorization") + 1]);

describe("a request with a credential that expires", () => {
  test("has the value of its time, and concurrent ones share one question", async () => {
    const { world, questions, answer } = await openRefreshed();
    expect((await ask(world, "/", bearer(world))).status).toBe(200);
    vi.advanceTimersByTime(600 * second);
    const waiting = [1, 2, 3].map(() => ask(world, "/", bearer(world)));
    await vi.waitFor(() => expect(questions).toHaveLength(1), 30_000);
    answer();
    expect((await Promise.all(waiting)).map(({ status }) => status)).toEqual([200, 200, 200]);
    expect((await ask(world, "/", bearer(world))).status).toBe(200);
    expect(sentTo(world)).toEqual([`Bearer ${value}`, ...Array.from({ length: 4 }, () => `Bearer ${fresh}`)]);
    expect(questions).toHaveLength(1);
  });

  test("doesn't wait if it has no placeholder, or isn't allowed", async () => {
    const { world, questions } = await openRefreshed({}, { methods: ["GET"] });
    vi.advanceTimersByTime(600 * second);
    expect((await ask(world, "/")).status).toBe(200);
    expect((await ask(world, "/", { method: "POST", ...bearer(world) })).status).toBe(403);
    expect(questions).toHaveLength(0);
  });

  test("is refused once the value has expired and there is no new one", async () => {
    const { world, questions } = await openRefreshed();
    vi.advanceTimersByTime(600 * second);
    const waiting = ask(world, "/", bearer(world));
    await vi.waitFor(() => expect(questions).toHaveLength(1), 30_000);
    questions[0]?.({ ok: false, reason: "its platform's callback answered with HTTP 500" });
    const refused = await waiting;
    const reason =
      "TOKEN has expired, and there is no new value: its platform's callback answered with HTTP 500";
    expect(refused).toMatchObject({ status: 403, headers: { "x-ambit-boundary": "refused" } });
    expect(refused.body).toBe(`Ambit's boundary refused this request: ${reason}.\n`);
    expect(world.session.decisions.at(-1)).toMatchObject({ allowed: false, reason });
    expect(world.origin.requests).toEqual([]);
    expect(world.session.faults).toEqual([]);
  });

  test("isn't sent again when the server answers with 401", async () => {
    const { world, questions } = await openRefreshed({
      listener: (_request, response) => void response.writeHead(401).end(),
    });
    expect((await ask(world, "/", bearer(world))).status).toBe(401);
    expect(world.origin.requests).toHaveLength(1);
    expect(questions).toHaveLength(0);
  });

  test("isn't sent if its client has left meanwhile", async () => {
    const { world, questions, answer } = await openRefreshed();
    vi.advanceTimersByTime(600 * second);
    const leaving = new AbortController();
    const left = ask(world, "/", { ...bearer(world), signal: leaving.signal });
    await vi.waitFor(() => expect(questions).toHaveLength(1), 30_000);
    leaving.abort();
    await expect(left).rejects.toThrow();
    // Another one waits by now, so the proxy knows that the first has left.
    const next = ask(world, "/next", bearer(world));
    await vi.waitFor(() => expect(world.session.decisions).toHaveLength(2), 30_000);
    answer();
    expect((await next).status).toBe(200);
    expect(world.origin.requests.map(({ url }) => url)).toEqual(["/next"]);
  });

  test("keeps the user of a password that has one", async () => {
    const { world, questions, answer } = await openRefreshed({}, { as: "basic" });
    const encoded = (pair: string) => `Basic ${Buffer.from(pair).toString("base64")}`;
    vi.advanceTimersByTime(600 * second);
    const waiting = ask(world, "/", { headers: { authorization: encoded(`x:${world.placeholder}`) } });
    await vi.waitFor(() => expect(questions).toHaveLength(1), 30_000);
    answer(`robot:${fresh}`);
    await waiting;
    expect(sentTo(world)).toEqual([encoded(`robot:${fresh}`)]);
  });
});

describe("a response", () => {
  test("contains neither the present value nor an earlier one", async () => {
    const { world, questions, answer } = await openRefreshed({
      listener: (_request, response) => void response.end(`${value} ${fresh} ${btoa(fresh)}`),
    });
    vi.advanceTimersByTime(600 * second);
    const waiting = ask(world, "/", bearer(world));
    await vi.waitFor(() => expect(questions).toHaveLength(1), 30_000);
    answer();
    const { body } = await waiting;
    expect(body).not.toContain(value);
    expect(body).not.toContain(fresh);
    expect(body).not.toContain(btoa(fresh).slice(0, 20));
    expect(body.split(" ")[0]).toBe(world.placeholder);
  });

  test("that began before contains no later value", async () => {
    let finish = () => {};
    const { world, questions, answer } = await openRefreshed({
      listener: ({ url }, response) => {
        if (url === "/next") return void response.end("hello");
        // The last character may begin the new value, so it is held back.
        response.write(`before ${fresh.slice(0, 1)}`);
        finish = () => void response.end(`${fresh.slice(1)} after`);
      },
    });
    // A control: until it is a value, the same text passes.
    const control = ask(world, "/slow", bearer(world));
    await vi.waitFor(() => expect(world.origin.requests).toHaveLength(1), 30_000);
    finish();
    expect((await control).body).toBe(`before ${fresh} after`);
    const slow = ask(world, "/slow", bearer(world));
    await vi.waitFor(() => expect(world.origin.requests).toHaveLength(2), 30_000);
    vi.advanceTimersByTime(600 * second);
    const next = ask(world, "/next", bearer(world));
    await vi.waitFor(() => expect(questions).toHaveLength(1), 30_000);
    answer();
    await next;
    finish();
    const { body } = await slow;
    expect(body).not.toContain(fresh);
    expect(body).toContain(" after");
  });
});

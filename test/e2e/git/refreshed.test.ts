// needs: jail, git
import { createServer, type Server as HttpServer } from "node:http";
import { text } from "node:stream/consumers";
import { listening } from "@ambit/fakes/listening";
import { beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { demo, type Server } from "../support/ambit.js";
import { type Forge, forgeHost } from "../support/forge/forge.js";
import { startForgeServer } from "../support/forge/forge-server.js";

const tokens = { first: `ghs_${"first000".repeat(5)}`, second: `ghs_${"second00".repeat(5)}` };
const platformKey = "Bearer key-of-the-platform-00";
/** Seconds that the first token is valid: the runner asks for the next one in their second half. */
const validSeconds = 40;
const rights = { fetch: /^\/acme\//, push: /^\/acme\// };
let forge: Forge;
let server: Server;
/** What the forge accepts now: a test changes it. */
const accepted: Record<string, typeof rights> = {};

beforeAll(async () => {
  const started = await startForgeServer(accepted);
  ({ forge, server } = started);
  forge.repository("acme/app", { "a.txt": "one\n" });
  // The sandbox is probed now, and not while a token expires.
  await run("true", {});
  return started.close;
}, 120_000);

interface Question {
  readonly authorization: string | undefined;
  readonly body: unknown;
}

/** A platform that revokes the first token when it mints the second. */
async function startPlatform(status = 200): Promise<{ url: string; questions: Question[] }> {
  const questions: Question[] = [];
  const platform: HttpServer = createServer(async (request, response) => {
    questions.push({ authorization: request.headers.authorization, body: JSON.parse(await text(request)) });
    delete accepted[tokens.first];
    accepted[tokens.second] = rights;
    const expiresAt = new Date(Date.now() + 3_600_000).toISOString();
    // Requests that come meanwhile wait for the same answer.
    setTimeout(
      () => response.writeHead(status).end(JSON.stringify({ value: tokens.second, expiresAt })),
      1_000,
    );
  });
  return { url: `http://127.0.0.1:${await listening(platform, onTestFinished)}/mint`, questions };
}

async function run(script: string, more: object) {
  const port = forge.port;
  const body = {
    ...demo(`run ${script}`, "say done"),
    sandboxPermission: {
      network: { allowlist: [`${forgeHost}:${port}`, `127.0.0.0/8:${port}`] },
      filesystem: "workspace",
    },
    ...more,
  };
  const told = await (await server.post("/run", body)).text();
  const encoded = Object.values(tokens).map((token) => btoa(`x-access-token:${token}`));
  for (const secret of [...Object.values(tokens), ...encoded, platformKey.slice(7)])
    expect(told + server.log()).not.toContain(secret);
  const result = JSON.parse(told);
  const ended = (result.events ?? []).find(({ type }: { type: string }) => type === "tool_result");
  return { result, printed: String(ended?.output) };
}

const credential = (refresh?: object) => ({
  credentials: [
    { name: "GIT_TOKEN", value: tokens.first, hosts: [`${forgeHost}:${forge.port}`], as: "basic", refresh },
  ],
});

const basic = (token: string) => `Basic ${btoa(`x-access-token:${token}`)}`;
const git = "git -c user.name=Agent -c user.email=agent@example.com";

describe("git inside, with a token that expires during the run", { timeout: 150_000 }, () => {
  it("fetches with the first one, and fetches and pushes with the next, for which the platform is asked once", async () => {
    const { url, questions } = await startPlatform();
    accepted[tokens.first] = rights;
    delete accepted[tokens.second];
    const expires = Math.ceil(Date.now() / 1_000) + validSeconds;
    const expiresAt = new Date(expires * 1_000).toISOString();
    const before = forge.served.length;
    const script = [
      `${git} clone -q ${forge.url("acme/app")} app && cd app && echo cloned`,
      `while [ $(date +%s) -le ${expires} ]; do sleep 1; done`,
      "for one in 1 2 3 4; do (git ls-remote -q origin >/dev/null && echo listed) & done; wait",
      `echo two > a.txt && ${git} commit -qam Second && git push -q origin HEAD:next && echo pushed`,
      "env; git config --list; cat .git/config; ps auxww 2>/dev/null; grep -rs ghs_ / --include='*.*' -l 2>/dev/null | head -3",
    ].join("; ");
    const refresh = { url, authorization: platformKey, expiresAt };
    const { result, printed } = await run(script, { sessionId: "refreshed", ...credential(refresh) });
    expect(result, printed + server.log()).toMatchObject({ ok: true, output: "done" });
    expect(printed.match(/^(cloned|listed|pushed)$/gm)).toEqual([
      "cloned",
      ...Array(4).fill("listed"),
      "pushed",
    ]);
    expect(forge.git("acme/app", "log", "-1", "--format=%s", "next")).toBe("Second");
    const { runId } = result;
    expect(questions).toEqual([
      { authorization: platformKey, body: { name: "GIT_TOKEN", sessionId: "refreshed", runId } },
    ]);
    const sent = forge.served.slice(before).map(({ authorization }) => authorization);
    expect(new Set(sent)).toEqual(new Set([basic(tokens.first), basic(tokens.second)]));
    // Each was sent only in its time: none with the first after one with the second.
    expect(sent.lastIndexOf(basic(tokens.first))).toBeLessThan(sent.indexOf(basic(tokens.second)));
  });

  it("fails without a callback, which shows that the first one has expired", async () => {
    delete accepted[tokens.first];
    const { printed } = await run(`git ls-remote ${forge.url("acme/app")} 2>&1`, credential());
    // Git's words when a server answers with 401 and it has no terminal to ask at.
    expect(printed).toContain("could not read Username");
    expect(forge.served.at(-1)?.authorization).toBe(basic(tokens.first));
  });

  it("sends nothing after the expiry when the platform fails, and git shows why", async () => {
    const { url, questions } = await startPlatform(503);
    accepted[tokens.first] = rights;
    const before = forge.served.length;
    const expiresAt = new Date(Date.now() - 1_000).toISOString();
    const { result, printed } = await run(
      `git ls-remote ${forge.url("acme/app")} 2>&1; git ls-remote ${forge.url("acme/app")} 2>&1`,
      credential({ url, expiresAt }),
    );
    const reason =
      "GIT_TOKEN has expired, and there is no new value: its platform's callback answered with HTTP 503";
    expect(printed).toContain(`remote: Ambit's boundary refused this request: ${reason}.`);
    expect(result.events).toContainEqual(
      expect.objectContaining({ type: "boundary_decision", allowed: false, reason }),
    );
    expect(forge.served).toHaveLength(before);
    // The second attempt comes too soon to ask again.
    expect(questions).toHaveLength(1);
  });
});

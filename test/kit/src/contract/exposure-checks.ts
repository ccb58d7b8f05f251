import assert from "node:assert/strict";
import type { Sandbox } from "@ambit/core/plugin";
import { type ContractCheck, script } from "./contract.js";

/** Requests from inside, without any proxy; prints the status and the body. */
const ask = `
import urllib.error, urllib.request
def ask(url, token, body=None):
    headers = {} if token is None else {"Authorization": "Bearer " + token}
    request = urllib.request.Request(url, headers=headers, data=body)
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(request, timeout=10) as response:
            return [response.status, response.read().decode()]
    except urllib.error.HTTPError as error:
        return [error.code, ""]
    except (OSError, EOFError) as error:
        return [0, type(error).__name__]
answers = [ask(url, token, None if body is None else body.encode()) for url, token, body in P["asks"]]
print(json.dumps(answers), flush=True)
`;

type Ask = readonly [url: string, token: string | null, body: string | null];
type Answer = readonly [status: number, body: string];

async function answers(sandbox: Sandbox, asks: readonly Ask[]): Promise<readonly Answer[]> {
  const { stdout, stderr, code, signal } = await script(sandbox, ask, { asks });
  const line = stdout.split("\n").find((one) => one.startsWith("["));
  assert.ok(line !== undefined, `the program ended with ${code ?? signal}: ${stdout}${stderr}`);
  return JSON.parse(line);
}

export const exposureChecks: readonly ContractCheck[] = [
  {
    title: "makes a handler reachable from inside, with its method, path, headers and body",
    check: async (contract) => {
      const sandbox = await contract.shared();
      const { url, token } = await sandbox.expose(async (request) => {
        const { method, url: asked } = request;
        const { pathname, search } = new URL(asked);
        return new Response(`${method} ${pathname}${search} ${await request.text()}`);
      });
      assert.match(url, /^http:\/\/127\.0\.0\.1:\d+$/);
      assert.deepEqual(
        await answers(sandbox, [
          [`${url}/a/b?c=d`, token, null],
          [`${url}/post`, token, "body"],
        ]),
        [
          [200, "GET /a/b?c=d "],
          [200, "POST /post body"],
        ],
      );
    },
  },
  {
    title: "refuses requests without the token before they reach the handler",
    check: async (contract) => {
      const sandbox = await contract.shared();
      let asked = 0;
      const { url, token } = await sandbox.expose(() => {
        asked += 1;
        return new Response("let through");
      });
      const statuses = (
        await answers(sandbox, [
          [url, null, null],
          [url, "", null],
          [url, `${token}x`, null],
          [url, token.slice(0, -1), null],
          [url, "undefined", null],
        ])
      ).map(([status]) => status);
      assert.deepEqual(statuses, [401, 401, 401, 401, 401]);
      assert.equal(asked, 0);
      assert.equal((await answers(sandbox, [[url, token, null]]))[0]?.[1], "let through");
    },
  },
  {
    title: "gives every handler a separate token",
    check: async (contract) => {
      const sandbox = await contract.shared();
      const one = await sandbox.expose(() => new Response("one"));
      const two = await sandbox.expose(() => new Response("two"));
      assert.notEqual(one.token, two.token);
      const [right, other, crossed, crossedBack] = await answers(sandbox, [
        [one.url, one.token, null],
        [two.url, two.token, null],
        [one.url, two.token, null],
        [two.url, one.token, null],
      ]);
      assert.deepEqual(
        [right, other],
        [
          [200, "one"],
          [200, "two"],
        ],
      );
      // Two handlers may share an address, and be distinguished by their tokens alone.
      assert.notEqual(crossed?.[1], "one");
      assert.notEqual(crossedBack?.[1], "two");
    },
  },
  {
    title: "keeps another session's handlers out of reach",
    check: async (contract) => {
      const [mine, other] = [await contract.open(), await contract.open()];
      let asked = 0;
      const theirs = await other.expose(() => {
        asked += 1;
        return new Response("theirs");
      });
      const own = await mine.expose(() => new Response("mine"));
      const [answer] = await answers(mine, [[theirs.url, own.token, null]]);
      assert.notEqual(answer?.[1], "theirs");
      assert.equal(asked, 0);
      if (contract.shape.required.includes("network.deny")) {
        // Not even with its token: the channel itself doesn't exist.
        await answers(mine, [[theirs.url, theirs.token, null]]);
        assert.equal(asked, 0);
      }
      assert.equal((await answers(other, [[theirs.url, theirs.token, null]]))[0]?.[1], "theirs");
    },
  },
  {
    title: "refuses requests after the exposure or the sandbox was closed",
    check: async (contract) => {
      const sandbox = await contract.shared();
      let asked = 0;
      const { url, token, close } = await sandbox.expose(() => {
        asked += 1;
        return new Response("still here");
      });
      await close();
      await close();
      const [answer] = await answers(sandbox, [[url, token, null]]);
      assert.notEqual(answer?.[0], 200);
      assert.equal(asked, 0);
    },
  },
  {
    title: "streams a response as it is written, and a large one completely",
    check: async (contract) => {
      const sandbox = await contract.shared();
      const piece = new TextEncoder().encode("x".repeat(64 * 1024));
      const pieces = 64;
      const { url, token } = await sandbox.expose(() => {
        let sent = 0;
        const body = new ReadableStream<Uint8Array>({
          pull: (controller) => {
            if (sent === pieces) return controller.close();
            sent += 1;
            controller.enqueue(piece);
          },
        });
        return new Response(body);
      });
      const { stdout } = await script(
        sandbox,
        `${ask.split("answers =")[0]}
status, body = ask(P["url"], P["token"])
print(json.dumps([status, str(len(body))]), flush=True)`,
        { url, token },
      );
      assert.match(stdout, new RegExp(`\\[200, "${pieces * piece.length}"\\]`));
    },
  },
];

import { spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { API_CASES, post } from "./requests.js";

// The built command, started as from a shell.
const MAIN = fileURLToPath(new URL("../dist/main.js", import.meta.url));

describe("ambit-model-server", () => {
  it("prints its address, then a line without the key for each request, and exits on SIGTERM", async () => {
    const child = spawn(process.execPath, [MAIN], { stdio: ["ignore", "pipe", "pipe"] });
    try {
      const lines = createInterface(child.stderr)[Symbol.asyncIterator]();
      const [url] = await once(createInterface(child.stdout), "line");
      expect(url).toMatch(/^http:\/\/127\.0\.0\.1:\d+$/);
      const logged: string[] = [];
      for (const { path, body } of API_CASES) {
        const address = `${url}${path(true)}`;
        const withKey = `${address}${address.includes("?") ? "&" : "?"}key=secret-key`;
        await post(withKey, body("[[say hi]] [[call add]]", true), {
          headers: { authorization: "Bearer secret-key" },
        });
        logged.push((await lines.next()).value);
      }
      await fetch(`${url}/elsewhere?key=secret-key`);
      logged.push((await lines.next()).value);
      expect(logged).toEqual([
        ...API_CASES.map(
          ({ api }) => `${api} the-model "[[say hi]] [[call add]]" -> say "hi", call add (200)`,
        ),
        "GET /elsewhere -> 404",
      ]);
    } finally {
      child.kill("SIGTERM");
    }
    expect(await once(child, "exit")).toEqual([0, null]);
  });

  it.each([["--port", "many"], ["--port", "70000"], ["--nonsense"]])(
    "refuses %s %s with its usage",
    async (...args) => {
      const child = spawn(process.execPath, [MAIN, ...args], { stdio: ["ignore", "ignore", "pipe"] });
      let errors = "";
      child.stderr.on("data", (data) => {
        errors += String(data);
      });
      expect(await once(child, "close")).toEqual([1, null]);
      expect(errors).toContain("Usage: ambit-model-server [--port N]");
    },
  );
});

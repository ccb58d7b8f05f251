import { createHash } from "node:crypto";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { unavailableReason } from "@ambit/daytona-loopback";
import { expect, it } from "vitest";
import { demo, emptyFolder } from "../support/ambit.js";
import { serveFromDaytona } from "../support/backends/serve-from.js";
import { startForge } from "../support/forge/forge.js";

const token = `ghp_${"elsewhere".repeat(4)}`;
const operator = "the-token-of-the-operator-of-this-server";
const limited = "a-token-of-a-project-that-may-use-daytona";

it("git works for a sandbox of Daytona's in one of this host's, which the receipt names", {
  timeout: 240_000,
}, async (context) => {
  const missing = unavailableReason();
  if (missing !== undefined) context.skip(`host: ${missing}`);
  const forge = await startForge({ [token]: { fetch: /^\/acme\//, push: /^\/acme\// } });
  try {
    const authority = join(await emptyFolder(), "authority.pem");
    writeFileSync(authority, forge.authority);
    const hash = createHash("sha256").update(limited).digest("hex");
    const server = await serveFromDaytona(
      {
        workspace: { allowedRanges: ["127.0.0.0/8"] },
        tokens: [{ token: `sha256:${hash}`, project: "one", sandboxes: ["daytona"] }],
      },
      { TEST_FORGE_AUTHORITY: authority, AMBIT_TOKEN: operator },
    );
    const base = forge.repository("acme/app", { "a.txt": "one" });
    const request = {
      ...demo(
        "run cat a.txt; env; git log -1 --format=%H; printf two > a.txt; git status --short",
        "say done",
      ),
      sandbox: "daytona",
      sandboxPermission: { network: "off" },
      workspace: {
        sources: [
          { type: "git", url: forge.url("acme/app"), credential: { value: token }, repository: true },
        ],
      },
      outputs: {
        patch: true,
        git: {
          branch: "changed",
          message: "Change it",
          author: { name: "Robot", email: "robot@acme.example" },
          credential: { value: token },
        },
      },
    };
    const post = async (path: string, as: string) => {
      const text = await (await server.post(path, request, { authorization: `Bearer ${as}` })).text();
      expect(text + server.log()).not.toContain(token);
      return JSON.parse(text);
    };
    // A caller who may use no other is refused, before anything starts.
    const { failure } = await post("/plan", limited);
    const lacking = { actor: "daytona", capability: "secrets.hidden", subject: "workspace.sources[0]" };
    expect(failure.gaps).toContainEqual(expect.objectContaining(lacking));

    const { receipt, ...result } = await post("/run", operator);
    expect(result, server.log()).toMatchObject({ ok: true, output: "done" });
    const ended = result.events.find(({ type }: { type: string }) => type === "tool_result");
    expect(JSON.stringify(ended)).toContain(base);
    expect(JSON.stringify(ended)).toContain("M a.txt");
    expect(receipt.sandbox).toBe("daytona");
    expect(receipt.sources).toMatchObject([{ commit: base }]);
    expect(receipt.actors).toContainEqual(
      expect.objectContaining({
        kind: "sandbox",
        name: "local",
        subjects: ["workspace.sources[0]", "outputs.git"],
      }),
    );
    expect(receipt.outputs.git).toMatchObject({ base, branch: "changed", pushed: true });
    expect(forge.git("acme/app", "show", "changed:a.txt")).toBe("two");
  } finally {
    await forge.close();
  }
});

import { symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { dockerEngine, unavailableReason } from "@ambit/docker-engine";
import { expect, it } from "vitest";
import { demo, emptyFolder, serve } from "../support/ambit.js";
import { withForge } from "../support/configurations.js";
import { startForge } from "../support/forge/forge.js";

const token = `ghp_${"container".repeat(4)}`;

/** Git tells no difference before a change, and after it only that. */
const partly = [
  "git status --porcelain; echo begun; ls -A",
  "printf two > src/a.txt; git commit -qam Inside; git show --name-only --format=%s; git status --porcelain",
  "git log -p --format= > /dev/null && git show HEAD:docs/b.txt; echo ended $?",
].join("; ");

const work =
  "cat a.txt; env; printf two > a.txt; echo; echo status:; git status --short; git commit -qam Inside; git log -1 --format='%an %s'";

it.for(["runc", "runsc"] as const)(
  "a commit comes into and leaves containers with %s",
  { timeout: 240_000 },
  async (runtime, context) => {
    if (process.env.AMBIT_SOAK === undefined) context.skip("host: this takes minutes: set AMBIT_SOAK=1");
    const missing = unavailableReason(runtime);
    if (missing !== undefined) context.skip(`host: ${missing}`);
    const forge = await startForge({ [token]: { fetch: /^\/acme\//, push: /^\/acme\// } });
    try {
      const { socket, image } = dockerEngine();
      const folder = await emptyFolder();
      const authority = join(folder, "authority.pem");
      writeFileSync(authority, forge.authority);
      const server = await serve(
        {
          TEST_FORGE_AUTHORITY: authority,
          TEST_DOCKER_SOCKET: socket,
          TEST_DOCKER_IMAGE: image,
          TEST_DOCKER_RUNTIME: runtime,
          TEST_DOCKER_DATA: await emptyFolder(),
        },
        withForge,
      );
      const base = forge.repository("acme/app", { "a.txt": "one" }, (run, made) => {
        symlinkSync("/etc/passwd", join(made, "link"));
        run("add", "-A");
      });
      const request = (sandbox: string) => ({
        ...demo(`run ${work}`, "say done"),
        sandbox,
        sandboxPermission: { network: "off", filesystem: "workspace" },
        workspace: {
          sources: [
            { type: "git", url: forge.url("acme/app"), credential: { value: token }, repository: true },
          ],
          gitUser: { name: "Agent", email: "agent@acme.example" },
        },
        outputs: {
          patch: true,
          git: {
            branch: sandbox,
            message: "Change it",
            author: { name: "Robot", email: "robot@acme.example" },
            credential: { value: token },
          },
        },
      });
      const run = async (sandbox: string) => {
        const text = await (await server.post("/run", request(sandbox))).text();
        expect(text + server.log()).not.toContain(token);
        const result = JSON.parse(text);
        expect(result, server.log()).toMatchObject({ ok: true, output: "done" });
        // Nothing but the agent's change differs, and its own commit stays inside.
        expect(text).toMatch(/status:\\n M a\.txt\\nAgent Inside/);
        return result.receipt;
      };
      const [here, there] = [await run("local"), await run(runtime)];
      expect(there.sources).toEqual(here.sources);
      expect(there.sources).toMatchObject([{ commit: base, omitted: [{ path: "link", reason: "link" }] }]);
      expect(there.outputs.git).toMatchObject({ base, branch: runtime });
      const tree = (branch: string) => forge.git("acme/app", "rev-parse", `${branch}^{tree}`);
      expect(tree(runtime)).toBe(tree("local"));
      expect(forge.git("acme/app", "show", `${runtime}:a.txt`)).toBe("two");

      forge.repository("acme/part", { "src/a.txt": "one", "docs/b.txt": "three" });
      const whole = request(runtime);
      const [source] = whole.workspace.sources;
      const part = { ...source, url: forge.url("acme/part"), sparse: ["src"] };
      const workspace = { ...whole.workspace, sources: [part] };
      const asked = { ...whole, ...demo(`run ${partly}`, "say done"), workspace };
      const text = await (await server.post("/run", asked)).text();
      expect(text + server.log()).not.toContain(token);
      expect(JSON.parse(text), server.log()).toMatchObject({ ok: true, output: "done" });
      expect(text).toMatch(/"begun\\n\.git\\nsrc\\nInside\\n\\nsrc\/a\.txt\\n.*could not fetch .*ended 128/);
      expect(forge.git("acme/part", "diff", "--name-status", "main", runtime)).toBe("M\tsrc/a.txt");
    } finally {
      await forge.close();
    }
  },
);

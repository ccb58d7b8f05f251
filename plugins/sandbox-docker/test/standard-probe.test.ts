import { probeSandboxes } from "@ambit/attacks/standard-probe";
import { type Command, capabilities, SandboxFailed } from "@ambit/core/plugin";
import { attacks, bareControl, startDecoys } from "@ambit/testkit";
import { expect, it, onTestFinished } from "vitest";

it("proves no capability of a backend that claims everything and enforces nothing", {
  timeout: 120_000,
}, async () => {
  const control = bareControl();
  const [attack] = attacks["network.deny"];
  const decoys = await startDecoys();
  onTestFinished(() => decoys.close());
  const findings = await probeSandboxes(
    {
      claims: capabilities,
      open: (spec, scope) => control.open(attack, spec, scope, decoys),
      node: process.execPath,
      makeAuthority: async () => {
        throw new Error("no server for a credential");
      },
      fixFor: () => "the backend's fix",
    },
    AbortSignal.timeout(60_000),
  );
  expect(findings.map(({ capability }) => capability)).toEqual(capabilities);
  for (const finding of findings) expect(finding).toMatchObject({ proven: false });
  const reasons = Object.fromEntries(findings.map((one) => [one.capability, one.proven ? "" : one.reason]));
  expect(reasons).toMatchObject({
    "network.deny": expect.stringMatching(/^reached in a sandbox without a network: .*connect 127.0.0.1 /),
    "filesystem.host-hidden": expect.stringMatching(/^reached outside the workspace: file .*put /),
    "process.contained": "a process of another sandbox, or of this host, is seen",
    "environment.per-tool": expect.stringMatching(/^a process beside it sees arguments /),
    "environment.named-only": expect.stringMatching(
      /^variables that the process wasn't given: .*AMBIT_PROBE_/,
    ),
    "resources.memory": "256 MiB could be used despite the limit",
    "resources.processes": "40 at once could be used despite the limit",
    "resources.disk": "32 MiB could be used despite the limit",
    "resources.cpu": expect.stringMatching(
      /^[\d.]+ cores were used without a limit, and [\d.]+ with one of 0.1$/,
    ),
  });
});

it("proves nothing by a program that was killed before it could look", async () => {
  const control = bareControl();
  const [attack] = attacks["process.contained"];
  const decoys = await startDecoys();
  onTestFinished(() => decoys.close());
  let killed = 0;
  const [finding] = await probeSandboxes(
    {
      claims: ["process.contained"],
      open: async (spec, scope) => {
        const sandbox = await control.open(attack, spec, scope, decoys);
        const spawn = sandbox.spawn.bind(sandbox);
        return Object.assign(sandbox, {
          spawn: async (command: Command) => {
            const [program, , source] = command.argv;
            const isProbes = source?.startsWith("eval(") === true || program.includes("/ambit-calls-");
            if (!isProbes) return await spawn(command);
            killed += 1;
            const exit = Promise.resolve({ code: null, signal: "SIGKILL" });
            return Object.assign(await spawn({ ...command, argv: ["/bin/true"] }), { exit });
          },
        });
      },
      node: process.execPath,
      fixFor: () => "the backend's fix",
    },
    AbortSignal.timeout(60_000),
  );
  expect(finding).toMatchObject({ proven: false, reason: "a probe's program was ended by SIGKILL" });
  // Each trial's programs, three times: it says nothing either way.
  expect(killed).toBeGreaterThanOrEqual(6);
});

it("proves nothing when a sandbox was lost in the middle, though other trials held", async () => {
  const control = bareControl();
  const [attack] = attacks["environment.named-only"];
  const decoys = await startDecoys();
  onTestFinished(() => decoys.close());
  const probe = (isLost: boolean) =>
    probeSandboxes(
      {
        claims: ["environment.named-only"],
        open: async (spec, scope) => {
          if (isLost) spec.onFailure?.(new SandboxFailed("the engine crashed"));
          return control.open(attack, spec, scope, decoys);
        },
        node: process.execPath,
        fixFor: () => "the backend's fix",
      },
      AbortSignal.timeout(60_000),
    );
  expect(await probe(false)).not.toMatchObject([{ reason: "the engine crashed" }]);
  expect(await probe(true)).toEqual([
    {
      capability: "environment.named-only",
      proven: false,
      reason: "the engine crashed",
      fix: "the backend's fix",
    },
  ]);
});

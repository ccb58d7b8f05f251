import assert from "node:assert/strict";
import { tmpdir } from "node:os";
import { setTimeout as after } from "node:timers/promises";
import type { Sandbox, SandboxBackend, SandboxSpec, SandboxTakeover } from "@ambit/core/plugin";
import { type KitScope, silentLog } from "../stage/kit-scope.js";
import { startRunnerProcess } from "../stage/runner-process.js";
import { freshId } from "../stage/stage.js";
import { type SessionShape, shell } from "./contract.js";

/** Two runners with one platform, and a third one that can be killed. */
export interface TakeoverStage {
  readonly backend: SandboxBackend;
  /** As a runner on another host has it. */
  readonly other: SandboxBackend;
  /** A plain module whose default export makes the backend, for a runner in a separate process. */
  readonly runnerModule: URL;
  /** The tightest that is proven here, and the one without a boundary: the same where nothing is. */
  readonly tight: SessionShape;
  readonly loose: SessionShape;
  readonly scope: KitScope;
}

/** A requirement on a backend that offers `takeover`. Throws what an assertion throws. */
export interface TakeoverCheck {
  readonly title: string;
  check(stage: TakeoverStage): Promise<void>;
}

/** Milliseconds in which processes of an earlier runner must end. */
const exitMs = 30_000;

export const takeoverChecks: readonly TakeoverCheck[] = [
  {
    title:
      "go over from a killed runner with their files and without their processes, until they are discarded",
    check: async (stage) => {
      const id = freshId();
      const handover = await openedByKilled(stage, id);
      const { tight, other } = stage;
      const next = await takeOver(stage, other, tight, { id, fence: 2 }, handover);
      const seen = async () => (await shell(next, "cat kept; wc -l < beats")).stdout;
      const before = await seen();
      assert.match(before, /^of the first\n/);
      await after(200);
      assert.equal(await seen(), before, "a process of the killed runner is still running");
      assert.ok(next.handover !== undefined && next.leave !== undefined, "it can't be taken over again");
      const spec = { id, fence: 3, log: silentLog };
      await next.leave();
      await takeoverOf(stage.backend).discard(spec, next.handover);
      await takeoverOf(stage.backend).discard(spec, next.handover);
      await assert.rejects(
        takeOver(stage, stage.backend, tight, { id, fence: 4 }, next.handover),
        "a sandbox that was discarded is taken over",
      );
    },
  },
  {
    title:
      "go to no runner with a low fence, another id or a boundary that isn't there, and leave nothing to an earlier one that lives",
    check: async (stage) => {
      const { backend, other, tight, loose } = stage;
      const id = freshId();
      const earlier = await backend.open(specOf(loose, { id, fence: 1 }), stage.scope);
      stage.scope.defer(() => earlier.close());
      const { handover } = earlier;
      assert.ok(handover !== undefined, "a sandbox with a fence has no handover");
      const path = `${earlier.workspace}/kept`;
      await earlier.writeFiles([{ path, content: "of the first" }]);
      const left = await earlier.spawn({ argv: ["/bin/sleep", "120"], env: {} });
      const kept = async (sandbox: Sandbox) => new TextDecoder().decode(await sandbox.readFile(path));
      await assert.rejects(
        takeOver(stage, other, loose, { id, fence: 1 }, handover),
        "its fence is no higher",
      );
      await assert.rejects(
        takeOver(stage, other, loose, { id: freshId(), fence: 2 }, handover),
        "its id is another",
      );
      assert.equal(await kept(earlier), "of the first");
      if (tight !== loose) {
        const closed = takeOver(stage, other, tight, { id, fence: 2 }, handover);
        await assert.rejects(closed, "a sandbox without a boundary is taken over as one that has it");
      }

      const next = await takeOver(stage, other, loose, { id, fence: 3 }, handover);
      await assert.rejects(shell(earlier, "echo late > kept"), "the earlier runner still starts processes");
      await assert.rejects(
        earlier.writeFiles([{ path, content: "late" }]),
        "the earlier runner still writes",
      );
      const ended = await Promise.race([left.exit, after(exitMs, undefined, { ref: false })]);
      assert.ok(ended !== undefined && ended.code !== 0, "a process of the earlier runner goes on");
      await earlier.close();
      assert.equal(await kept(next), "of the first");
      await assert.rejects(
        takeOver(stage, backend, loose, { id, fence: 3 }, next.handover ?? ""),
        "the earlier runner takes the sandbox over again with a used fence",
      );
      assert.equal(await kept(next), "of the first");
      await next.close();
    },
  },
];

/** What a runner in another process hands over; it has been killed since, while its program ran. */
async function openedByKilled({ runnerModule, tight, scope }: TakeoverStage, id: string): Promise<string> {
  const { boundary, required } = tight;
  const program =
    "echo of the first > kept; while :; do echo beat >> beats; sleep 0.05; done & echo begun; wait";
  const runner = startRunnerProcess(
    { module: runnerModule.href, id, boundary, required, fence: 1, argv: ["/bin/sh", "-c", program] },
    { temporaryFolder: tmpdir() },
  );
  scope.defer(() => runner.kill());
  await runner.says("begun");
  await runner.kill();
  const { stdout } = await runner.finished;
  const [, handover] = /^handover (.+)$/m.exec(stdout) ?? [];
  assert.ok(handover !== undefined, "a sandbox with a fence has no handover");
  return handover;
}

async function takeOver(
  { scope }: Pick<TakeoverStage, "scope">,
  backend: SandboxBackend,
  shape: SessionShape,
  overrides: Partial<SandboxSpec>,
  handover: string,
): Promise<Sandbox> {
  const sandbox = await takeoverOf(backend).takeOver(specOf(shape, overrides), handover, scope);
  scope.defer(() => sandbox.close());
  return sandbox;
}

/** @throws AssertionError for a backend without it. */
export function takeoverOf({ name, takeover }: SandboxBackend): SandboxTakeover {
  assert.ok(takeover !== undefined, `${name} has no takeover`);
  return takeover;
}

function specOf({ boundary, required }: SessionShape, overrides: Partial<SandboxSpec>): SandboxSpec {
  return {
    id: freshId(),
    boundary,
    required,
    requiredPaths: [],
    onDecision: () => undefined,
    log: silentLog,
    ...overrides,
  };
}

import {
  type LoopbackDaytona,
  type LoopbackOptions,
  startLoopbackDaytona,
  unavailableReason,
} from "@ambit/daytona-loopback";
import { Daytona, type Sandbox } from "@daytona/sdk";
import { afterAll, beforeAll, beforeEach } from "vitest";

/** One loopback with the official SDK for all tests of a file. Started before them, closed after them. */
export interface Fixture {
  readonly loopback: LoopbackDaytona;
  readonly daytona: Daytona;
}

export const connect = ({ apiKey, apiUrl }: Pick<LoopbackDaytona, "apiKey" | "apiUrl">) =>
  new Daytona({ apiKey, apiUrl, target: "us" });

/** What this machine lacks, to skip a whole file. */
export const lacking = unavailableReason();

export function skipWithoutHost(): void {
  beforeEach((context) => {
    if (lacking !== undefined) context.skip(`host: ${lacking}`);
  });
}

export function useLoopback(options: LoopbackOptions = {}): () => Fixture {
  let fixture: Fixture | undefined;
  skipWithoutHost();
  beforeAll(async () => {
    if (lacking !== undefined) return;
    const loopback = await startLoopbackDaytona({
      startDelayMs: 0,
      snapshots: { ambit: { user: "root" } },
      ...options,
    });
    fixture = { loopback, daytona: connect(loopback) };
  });
  afterAll(async () => {
    await fixture?.daytona[Symbol.asyncDispose]();
    await fixture?.loopback.close();
  });
  return () => {
    if (!fixture) throw new Error("the loopback didn't start");
    return fixture;
  };
}

/** A sandbox for a file's tests. */
export function useSandbox(fixture: () => Fixture, snapshot = "ambit"): () => Sandbox {
  let sandbox: Sandbox | undefined;
  beforeAll(async () => {
    if (lacking === undefined) sandbox = await fixture().daytona.create({ snapshot });
  });
  return () => {
    if (!sandbox) throw new Error("the sandbox wasn't created");
    return sandbox;
  };
}

/** Both output streams of a command, without the last newline. */
export async function output(sandbox: Sandbox, command: string): Promise<string> {
  const { result } = await sandbox.process.executeCommand(command, undefined, undefined, 10);
  return result.trimEnd();
}

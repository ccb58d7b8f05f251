import "reflect-metadata";
import { definePlugin, inject, type Log, pluginTokens, type Registrar } from "@ambit/core/plugin";
import { FakeExecutor } from "@ambit/fakes/executor";
import { recordingLog } from "@ambit/fakes/log";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import { Registry } from "../../src/index.js";

const config = z.strictObject({ place: z.string().default("here") });
type Config = z.output<typeof config>;

async function load(...registers: readonly ((registrar: Registrar, config: Config) => void)[]) {
  const log = recordingLog();
  const plugins = registers.map((register, at) =>
    definePlugin({ name: `plugin-${at + 1}`, api: 1, config, register }),
  );
  const entries = plugins.map((use, at) => ({ use, config: at === 0 ? {} : { place: `there ${at}` } }));
  const never = () => Promise.reject(new Error("nothing is imported here"));
  const registry = await Registry.load(entries, never, { timeoutMs: 1, maxAgeMs: 1, retryMs: 1 }, log);
  return { log, actors: registry.registrations.map(({ actor }) => actor) };
}

class Injected extends FakeExecutor {
  constructor(
    @inject(pluginTokens.log) readonly log: Log,
    @inject(pluginTokens.config) readonly given: Config,
    readonly more = "default",
  ) {
    super({ kind: given.place });
  }
}

describe("a class that a plugin registers", () => {
  it("is constructed with the log and the configuration of its own plugin", async () => {
    const add = ({ add }: Registrar) => add("executor", Injected);
    const { actors, log } = await load(add, add);
    expect(actors).toMatchObject([{ kind: "here" }, { kind: "there 1" }]);
    for (const actor of actors) {
      if (!(actor instanceof Injected)) expect.fail("another class was constructed");
      expect(actor.more).toBe("default");
      actor.log.warn({ at: actor.kind }, "hello");
    }
    expect(log.lines).toMatchObject([
      { level: "warn", fields: { plugin: "plugin-1", at: "here" } },
      { level: "warn", fields: { plugin: "plugin-2", at: "there 1" } },
    ]);
  });

  it("needs no decorator if its constructor has no parameters", async () => {
    class Plain extends FakeExecutor {
      constructor() {
        super({ kind: "plain" });
      }
    }
    expect((await load(({ add }) => add("executor", Plain))).actors).toMatchObject([{ kind: "plain" }]);
  });

  class NothingNamed extends FakeExecutor {
    constructor(readonly given: Config) {
      super();
    }
  }
  class SecondNotNamed extends FakeExecutor {
    constructor(
      @inject(pluginTokens.config) readonly given: Config,
      readonly between: Config,
      @inject(pluginTokens.log) readonly log: Log,
    ) {
      super();
    }
  }
  class OfNoPlugin extends FakeExecutor {
    constructor(@inject(Symbol.for("ambit.runner.request")) readonly request: unknown) {
      super();
    }
  }
  it.each([
    [NothingNamed, "parameter 1 of the constructor of NothingNamed names no token"],
    [SecondNotNamed, "parameter 2 of the constructor of SecondNotNamed names no token"],
    [OfNoPlugin, "ambit.runner.request"],
  ])("is refused when it asks for what isn't there: %o", async (given, message) => {
    await expect(load(({ add }) => add("executor", given))).rejects.toThrow(message);
  });
});

describe("a plugin that registers objects", () => {
  it("gets its log in addition to its configuration", async () => {
    const { log } = await load((registrar, { place }) => registrar.log.info({ place }, "registered"));
    expect(log.lines).toMatchObject([{ level: "info", fields: { plugin: "plugin-1", place: "here" } }]);
  });
});

import type { Capability, Sandbox } from "@ambit/core/plugin";
import { expect, it } from "vitest";
import { makeDecoys } from "../src/standard-probe/decoys.js";
import { makeBench } from "../src/standard-probe/make-bench.js";

it.each<[readonly Capability[]]>([[[]], [["process.contained"]], [["network.deny", "filesystem.none"]]])(
  "opens a sandbox for each purpose when only %j is claimed",
  async (claims) => {
    const decoys = await makeDecoys("127.0.0.1");
    let opened = 0;
    const open = async () => {
      opened += 1;
      return Object.create(null, { id: { value: opened } }) as Sandbox;
    };
    const probe = { claims, open, node: process.execPath, fixFor: () => "a fix" };
    const bench = makeBench(probe, decoys, AbortSignal.timeout(10_000), open);
    const places = [bench.unlimited, bench.closed, bench.listed, bench.empty];
    // A process of one must not be seen in another: they can't be the same.
    expect(new Set(await Promise.all(places.map((place) => place()))).size).toBe(4);
    expect(await bench.closed()).toBe(await bench.closed());
    await decoys.close();
  },
);

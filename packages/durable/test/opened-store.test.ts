import { PluginBrokeContract } from "@ambit/core";
import { expect, test } from "vitest";
import { openedStore } from "../src/store.js";

const backend = { name: "old", open: async () => undefined };

test.each([
  ["a store of an earlier version", { create: () => undefined, close: () => undefined }],
  ["nothing", undefined],
])("%s is refused, with each method that it lacks", (_what, opened) => {
  expect(() => openedStore(backend, opened)).toThrow(PluginBrokeContract);
  expect(() => openedStore(backend, opened)).toThrow(
    /^The store 'old' lacks .*append, .*takeOver.*: install a version of its plugin that fits this Ambit\.$/,
  );
});

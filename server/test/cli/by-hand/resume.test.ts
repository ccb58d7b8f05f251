import { rm } from "node:fs/promises";
import { homedir } from "node:os";
import { expect, it, onTestFinished, vi } from "vitest";
import { ByHand } from "../../../src/cli/by-hand/by-hand.js";
import { Conversation } from "../../../src/cli/by-hand/conversation.js";
import { emptyFolder } from "../../support/empty-folder.js";

it.each([
  ["whose agent said nothing", undefined],
  ["that ended before its agent said anything", []],
])("a run %s can be resumed: its prompt is the earlier message", async (_what, messages) => {
  const folder = await emptyFolder();
  vi.stubEnv("XDG_STATE_HOME", await emptyFolder());
  onTestFinished(() => void vi.unstubAllEnvs());
  const { file } = await Conversation.of(folder);
  // Root's are in a folder that no variable moves.
  onTestFinished(() => rm(file, { force: true }));
  const options = { agent: "demo", folder };
  await new ByHand("first", options, undefined).remember({ messages });
  const request = await new ByHand("then", { ...options, resume: true }, undefined).request({
    HOME: homedir(),
  });
  expect(request).toMatchObject({
    messages: [
      { role: "user", content: "first" },
      { role: "user", content: "then" },
    ],
  });
});

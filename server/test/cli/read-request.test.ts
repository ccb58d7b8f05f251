import { expect, it } from "vitest";
import { readRequest } from "../../src/cli/read-request.js";

it("says what words may be that name no file", async () => {
  const read = readRequest("fix the test", ": if these words are a prompt, add --folder .");
  await expect(read).rejects.toThrow(
    "fix the test: there is no such file: if these words are a prompt, add --folder .",
  );
  await expect(readRequest("none.json")).rejects.toThrow(/^none.json: there is no such file$/);
});

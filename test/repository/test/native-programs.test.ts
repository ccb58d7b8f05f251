// needs: compilers
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { globbySync } from "globby";
import { describe, expect, it } from "vitest";
import { compileAll } from "../../../scripts/native/build.mjs";
import { root } from "../rules/tree.js";

describe("the committed programs", () => {
  const compiled = compileAll();

  it.each([...compiled])("%s has the bytes that its source compiles to", (path, program) => {
    const committed = readFileSync(join(root, path));
    expect(committed.equals(program), "npm run build:native writes other bytes").toBe(true);
  });

  it("are all compiled again here", () => {
    const committed = globbySync("{agents,core,packages,plugins,server}/**/native/*", {
      cwd: root,
      ignore: ["**/node_modules/**", "**/*.c"],
    });
    expect(committed.toSorted()).toEqual([...compiled.keys()].toSorted());
  });
});

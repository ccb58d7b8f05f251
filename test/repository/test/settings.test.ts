import { readFileSync } from "node:fs";
import { configurationJsonSchema } from "ambit";
import { globbySync } from "globby";
import { expect, test } from "vitest";
import { z } from "zod";

const root = new URL("../../../", import.meta.url);
const plugins = new URL("plugins/", root);
const moduleSchema = z.object({ default: z.object({ name: z.string(), config: z.instanceof(z.ZodType) }) });
const levelSchema = z.object({ properties: z.record(z.string(), z.unknown()).default({}) });
const defaultSchema = z.object({ default: z.union([z.string(), z.number()]) });

/** The bridge's own page has the defaults of what a plugin leaves as it is. */
const page = readFileSync(new URL("../docs/write-a-backend.md", plugins), "utf8");
const numbers = (text: string) => text.replaceAll(/(?<=\d)[ ,](?=\d{3}\b)/g, "");

function propertiesOf(schema: unknown): readonly (readonly [string, unknown])[] {
  const level = levelSchema.safeParse(schema);
  return level.success ? Object.entries(level.data.properties) : [];
}

/** Where a README leaves them to another place. */
const isElsewhere = (setting: string) => setting === "canary";

test.each(globbySync("*/README.md", { cwd: plugins }))("plugins/%s names every setting", async (path) => {
  const main = new URL(path.replace("README.md", "dist/index.js"), plugins);
  const { config } = moduleSchema.parse(await import(main.href)).default;
  const readme = readFileSync(new URL(path, plugins), "utf8");
  const spans = [...readme.matchAll(/`([^`\n]+)`/g)].map(([, span = ""]) => span);
  const isNamed = (name: string) => spans.some((span) => new RegExp(`(^|\\W)${name}(\\W|$)`).test(span));
  const missing: string[] = [];
  for (const [setting, schema] of propertiesOf(
    z.toJSONSchema(config, { io: "input", unrepresentable: "any" }),
  )) {
    if (!isNamed(setting)) missing.push(setting);
    for (const [inner, value] of isElsewhere(setting) ? [] : propertiesOf(schema)) {
      const given = defaultSchema.safeParse(value);
      const row = `| \`${inner}\` | ${given.success ? given.data.default : ""} |`;
      const isAsOnPage =
        setting === "bridge" && numbers(page).replaceAll("`", "").includes(row.replaceAll("`", ""));
      if (!isNamed(inner) && !isAsOnPage) missing.push(`${setting}.${inner}`);
    }
  }
  expect(missing).toEqual([]);
});

test("the server's README and the pages of docs name every setting of the configuration", () => {
  const pages = globbySync(["README.md", "server/README.md", "docs/*.md"], { cwd: root });
  const text = pages.map((path) => readFileSync(new URL(path, root), "utf8")).join("\n");
  const missing: string[] = [];
  const visit = (schema: unknown, prefix: string) => {
    for (const [setting, inner] of propertiesOf(schema)) {
      // An editor's key, which sets nothing.
      if (setting !== "$schema" && !new RegExp(`\\b${setting}\\b`).test(text)) missing.push(prefix + setting);
      visit(inner, `${prefix}${setting}.`);
    }
  };
  visit(configurationJsonSchema(), "");
  expect(missing).toEqual([]);
});

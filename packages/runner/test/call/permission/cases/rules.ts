import { allow, deny, type PermissionCase, parks } from "./permission-case.js";

/** Rules: the strictest match decides. */
export const ruleCases: readonly PermissionCase[] = [
  { name: "rule allow over default ask", mode: "ask", rules: [["Bash", "allow"]], expected: allow },
  { name: "rule deny over default allow", mode: "allow", rules: [["Bash", "deny"]], expected: deny },
  { name: "rule ask over default allow", mode: "allow", rules: [["Bash", "ask"]], expected: parks },
  {
    name: "rule ask over a reader's default",
    mode: "allow_reads",
    readOnly: true,
    rules: [["Bash", "ask"]],
    expected: parks,
  },
  {
    name: "of two matching rules deny beats allow, in either order",
    mode: "ask",
    rules: [
      ["Bash", "allow"],
      ["Bash(git:*)", "deny"],
    ],
    expected: deny,
  },
  {
    name: "of two matching rules ask beats allow",
    mode: "allow",
    rules: [
      ["Bash(git:*)", "ask"],
      ["Bash", "allow"],
    ],
    expected: parks,
  },
  {
    name: "of three matching rules deny beats ask and allow",
    mode: "allow",
    rules: [
      ["Bash", "allow"],
      ["Bash", "deny"],
      ["Bash", "ask"],
    ],
    expected: deny,
  },
  {
    name: "a rule for another name doesn't match",
    mode: "allow",
    rules: [["Write", "deny"]],
    expected: allow,
  },
  { name: "a name is matched whole", mode: "allow", rules: [["Bas", "deny"]], expected: allow },
  { name: "a name is matched by case", mode: "allow", rules: [["bash", "deny"]], expected: allow },
  { name: "a prefix that fits", mode: "ask", rules: [["Bash(git push:*)", "allow"]], expected: allow },
  { name: "a prefix that doesn't", mode: "ask", rules: [["Bash(rm:*)", "allow"]], expected: parks },
  { name: "an empty prefix fits every text", mode: "ask", rules: [["Bash(:*)", "allow"]], expected: allow },
  {
    name: "an allow by prefix isn't for another text than the command",
    mode: "ask",
    arguments: { timeout: 3, command: "rm -rf x", note: "git" },
    rules: [["Bash(git:*)", "allow"]],
    expected: parks,
  },
  {
    name: "a prefix of an argument that is a text itself",
    mode: "ask",
    arguments: "git log",
    rules: [["Bash(git:*)", "allow"]],
    expected: allow,
  },
  {
    name: "an allow by prefix fits no call without texts",
    mode: "ask",
    arguments: { n: 1 },
    rules: [["Bash(:*)", "allow"]],
    expected: parks,
  },
  {
    name: "a prefix with brackets and stars is taken as it is",
    mode: "ask",
    arguments: { command: "f(*) x" },
    rules: [["Bash(f(*):*)", "allow"]],
    expected: allow,
  },
  {
    name: "a denied prefix behind another argument",
    mode: "allow",
    arguments: { aaa: "git", command: "  rm -rf x" },
    rules: [["Bash(rm:*)", "deny"]],
    expected: deny,
  },
  {
    name: "a ceiling's prefix behind another argument",
    mode: "allow",
    tool: "allow",
    arguments: { aaa: "git", command: ["rm", "-rf", "x"] },
    ceiling: ["Bash(rm -rf:*)"],
    expected: deny,
  },
];

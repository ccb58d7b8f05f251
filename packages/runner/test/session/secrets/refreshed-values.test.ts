import { describe, expect, test } from "vitest";
import { RefreshedValues } from "../../../src/session/session-secrets.js";

const all = () => true;
const valueAt = (name: string, index: number, length = 20) => {
  const value = `${name}-${String(index)}-`.padEnd(length, "x");
  return { name, value, secrets: [value] };
};

describe("the values that a session's credentials got", () => {
  test("are the last of each credential, and eight earlier ones", () => {
    const values = new RefreshedValues();
    for (let index = 0; index < 100; index += 1) {
      expect(values.add(valueAt("ONE", index), all)).toBe(true);
      if (index < 3) values.add(valueAt("TWO", index), all);
    }
    expect(values.byName.ONE).toEqual(Array.from({ length: 9 }, (_, at) => valueAt("ONE", 91 + at).value));
    expect(values.byName.TWO).toHaveLength(3);
    expect(values.secrets.size).toBe(12);
  });

  test("have at most 8,192 characters besides those in use", () => {
    const values = new RefreshedValues();
    for (let index = 0; index < 8; index += 1) {
      values.add(valueAt("ONE", index, 4_096), all);
      values.add(valueAt("TWO", index, 4_096), all);
    }
    expect(values.byName.ONE).toHaveLength(2);
    expect(values.byName.TWO).toHaveLength(2);
  });

  test("make room for a new one, and none in use is forgotten", () => {
    const values = new RefreshedValues();
    const three = (secrets: ReadonlySet<string>) => secrets.size <= 3;
    for (let index = 0; index < 3; index += 1) values.add(valueAt("ONE", index), three);
    expect(values.add(valueAt("TWO", 0), three)).toBe(true);
    expect(values.add(valueAt("THREE", 0), three)).toBe(true);
    const before = values.byName;
    expect(before).toEqual({
      ONE: [valueAt("ONE", 2).value],
      TWO: [valueAt("TWO", 0).value],
      THREE: [valueAt("THREE", 0).value],
    });
    expect(values.add(valueAt("FOUR", 0), three)).toBe(false);
    expect(values.byName).toEqual(before);
  });

  test("count one that comes again once, as the newest", () => {
    const values = new RefreshedValues();
    for (const index of [0, 1, 0]) values.add(valueAt("ONE", index), all);
    expect(values.byName.ONE).toEqual([valueAt("ONE", 1).value, valueAt("ONE", 0).value]);
  });
});

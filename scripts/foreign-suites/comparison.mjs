/**
 * What differs between a suite's results inside a jail and outside of it.
 *
 * @import { Outcome, Results } from "./suites.mjs"
 *
 * @typedef {object} Difference
 * @property {string} test
 * @property {string} outside its outcome, or "not run"
 * @property {string} inside
 *
 * @typedef {object} Comparison
 * @property {string} id of the suite
 * @property {string} version
 * @property {readonly Outcome[]} outside of each test
 * @property {readonly Outcome[]} inside
 * @property {readonly Difference[]} differences
 *
 * @typedef {object} Reason
 * @property {string} suite its id
 * @property {RegExp} tests whose names match differ for this reason
 * @property {string} reason a sentence
 */

/**
 * @param {Results} outside
 * @param {Results} inside
 * @returns {readonly Difference[]} sorted by name
 */
export function differences(outside, inside) {
  return [...new Set([...outside.keys(), ...inside.keys()])]
    .map((test) => ({
      test,
      outside: outside.get(test) ?? "not run",
      inside: inside.get(test) ?? "not run",
    }))
    .filter((each) => each.outside !== each.inside)
    .toSorted((one, other) => (one.test < other.test ? -1 : 1));
}

/**
 * Those of the first attempt that the second one shows too: a test that passes once and fails once, at the same place, shows nothing.
 *
 * @param {readonly Difference[]} first
 * @param {readonly Difference[]} second
 */
export function repeated(first, second) {
  const again = new Map(second.map((each) => [each.test, each]));
  return first.filter(({ test, outside, inside }) => {
    const other = again.get(test);
    return other?.outside === outside && other.inside === inside;
  });
}

/**
 * @param {Comparison} comparison
 * @param {readonly Reason[]} reasons
 * @returns {ReadonlyMap<string, readonly Difference[]>} by the reason; those without one by ""
 */
export function byReason({ id, differences: all }, reasons) {
  return Map.groupBy(
    all,
    ({ test }) => reasons.find(({ suite, tests }) => suite === id && tests.test(test))?.reason ?? "",
  );
}

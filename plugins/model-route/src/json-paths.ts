/** A key below a path. */
export function joined(path: string, key: string): string {
  return path === "" ? key : `${path}.${key}`;
}

/** The objects and arrays on the way to a value. Of `tools[].type`: the document, `tools` and `tools[]`. */
export function waysTo(path: string): readonly string[] {
  return [
    "",
    ...[...path.matchAll(/\[\]|\./g)].flatMap(({ index }, at, all) => {
      const before = path.slice(0, index);
      // An array's elements are on the way too.
      return all[at]?.[0] === "[]" ? [before, `${before}[]`] : [before];
    }),
  ];
}

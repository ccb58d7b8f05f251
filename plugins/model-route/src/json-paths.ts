/** A key below a path. */
export function joined(path: string, key: string): string {
  return path === "" ? key : `${path}.${key}`;
}

/** The objects and arrays that enclose a value. For `tools[].type`: the document, `tools` and `tools[]`. */
export function ancestorsOf(path: string): readonly string[] {
  return [
    "",
    ...[...path.matchAll(/\[\]|\./g)].flatMap(({ index }, at, all) => {
      const before = path.slice(0, index);
      // An array's elements enclose it too.
      return all[at]?.[0] === "[]" ? [before, `${before}[]`] : [before];
    }),
  ];
}

/** JSON texts that are cheap to send and expensive to read. */

/** `[{},{},…]`. */
export function emptyObjects(values: number): string {
  return `[${"{},".repeat(Math.max(0, Math.floor(values / 2) - 1))}{}]`;
}

/** `{"k0":0,"k1":1,…}`: every key is new to the parser. */
export function distinctKeys(values: number): string {
  return `{${Array.from({ length: Math.floor(values / 2) }, (_, index) => `"k${index}":${index}`).join()}}`;
}

/** Rows as a database returns them. */
export function rows(values: number): string {
  const row = '{"id":12345,"name":"a name","tags":["one","two"],"open":true}';
  return `[${`${row},`.repeat(Math.max(0, Math.floor(values / 11) - 1))}${row}]`;
}

/** In turn. */
export function manyValues(values: number, turn: number): string {
  const kinds = [emptyObjects, distinctKeys, rows];
  return (kinds[turn % kinds.length] ?? rows)(values);
}

/** A text that must be escaped, in which a search for credentials often begins and never ends. */
export function longText(characters: number): string {
  const piece = 'a line "of" output, with Bearer sk-so and quotes\\n';
  return piece.repeat(Math.ceil(characters / piece.length)).slice(0, characters);
}

import { type Class, parseSync, Visitor } from "oxc-parser";

/** A file, as the input of a rule. */
export interface SourceFile {
  /** Relative to the repository, with `/`. */
  readonly path: string;
  readonly text: string;
}

/** TypeScript 7 has no public parser; oxc's is fast and supports TypeScript. */
function parse({ path, text }: SourceFile) {
  const { program, errors } = parseSync(path, text);
  if (errors.length > 0) throw new Error(`${path} can't be parsed: ${errors[0]?.message}`);
  return program;
}

/** The specifiers of a file's imports, including types and re-exports, but not computed ones such as `import(name)`. */
export function importsOf(file: SourceFile): string[] {
  const specifiers: string[] = [];
  const add = ({ source }: { source: { type: string; value?: unknown } | null }) => {
    if (source?.type === "Literal" && typeof source.value === "string") specifiers.push(source.value);
  };
  new Visitor({
    ImportDeclaration: add,
    ExportNamedDeclaration: add,
    ExportAllDeclaration: add,
    ImportExpression: add,
    TSImportType: add,
  }).visit(parse(file));
  return specifiers;
}

export function classesOf(file: SourceFile): Class[] {
  const classes: Class[] = [];
  const add = (found: Class) => classes.push(found);
  new Visitor({ ClassDeclaration: add, ClassExpression: add }).visit(parse(file));
  return classes;
}

import { type Argument, type Class, type Expression, parseSync, Visitor } from "oxc-parser";

/** A file, as the input of a rule. */
export interface SourceFile {
  /** Relative to the repository, with `/`. */
  readonly path: string;
  readonly text: string;
}

/** Most rules ask for the imports of the same files. */
const knownImports = new WeakMap<SourceFile, readonly string[]>();

/** TypeScript 7 has no public parser; oxc's is fast and supports TypeScript. */
function parse({ path, text }: SourceFile) {
  const { program, errors } = parseSync(path, text);
  if (errors.length > 0) throw new Error(`${path} can't be parsed: ${errors[0]?.message}`);
  return program;
}

/** The specifiers of a file's imports, including types and re-exports, but not computed ones such as `import(name)`. */
export function importsOf(file: SourceFile): readonly string[] {
  const known = knownImports.get(file);
  if (known !== undefined) return known;
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
  knownImports.set(file, specifiers);
  return specifiers;
}

/**
 * The paths relative to a file that its text states: imports, `new URL(path, import.meta.url)`,
 * `import.meta.resolve(path)` and those joined to `import.meta.dirname`. Of a template, what stands before its first value.
 */
export function relativePathsOf(file: SourceFile): string[] {
  const paths = [...importsOf(file)];
  new Visitor({
    ImportExpression: ({ source }) => {
      if (source.type === "TemplateLiteral") paths.push(...textOf(source));
    },
    NewExpression: ({ callee, arguments: [path, base] }) => {
      if (callee.type === "Identifier" && callee.name === "URL" && isMeta(base, "url"))
        paths.push(...textOf(path));
    },
    CallExpression: ({ callee, arguments: [first, second] }) => {
      if (isMeta(callee, "resolve")) paths.push(...textOf(first));
      if (isMeta(first, "dirname")) paths.push(...textOf(second));
    },
  }).visit(parse(file));
  return paths.filter((path) => path.startsWith("."));
}

function isMeta(node: Expression | Argument | undefined, name: string): boolean {
  return (
    node?.type === "MemberExpression" &&
    node.object.type === "MetaProperty" &&
    node.property.type === "Identifier" &&
    node.property.name === name
  );
}

function textOf(node: Argument | undefined): string[] {
  if (node?.type === "Literal" && typeof node.value === "string") return [node.value];
  return node?.type === "TemplateLiteral" ? [node.quasis[0]?.value.cooked ?? ""] : [];
}

export function classesOf(file: SourceFile): Class[] {
  const classes: Class[] = [];
  const add = (found: Class) => classes.push(found);
  new Visitor({ ClassDeclaration: add, ClassExpression: add }).visit(parse(file));
  return classes;
}

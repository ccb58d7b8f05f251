import { type Argument, type Class, type Expression, parseSync, Visitor } from "oxc-parser";

/** A file, as the input of a rule. */
export interface SourceFile {
  /** Relative to the repository, with `/`. */
  readonly path: string;
  readonly text: string;
}

interface StatedPaths {
  readonly imports: readonly string[];
  /** Others. */
  readonly paths: readonly string[];
}

/** Most rules ask for the imports of the same files, and to parse all files takes seconds. */
const statedPaths = new WeakMap<SourceFile, StatedPaths>();

/** TypeScript 7 has no public parser; oxc's is fast and supports TypeScript. */
function parse({ path, text }: SourceFile) {
  const { program, errors } = parseSync(path, text);
  if (errors.length > 0) throw new Error(`${path} can't be parsed: ${errors[0]?.message}`);
  return program;
}

/** The specifiers of a file's imports, including types and re-exports, but not computed ones such as `import(name)`. */
export const importsOf = (file: SourceFile): readonly string[] => statedIn(file).imports;

/**
 * The paths relative to a file that its text states: imports, `new URL(path, import.meta.url)`,
 * `import.meta.resolve(path)` and those joined to `import.meta.dirname`. Of a template, what stands before its first value.
 */
export function relativePathsOf(file: SourceFile): string[] {
  const { imports, paths } = statedIn(file);
  return [...imports, ...paths].filter((path) => path.startsWith("."));
}

function statedIn(file: SourceFile): StatedPaths {
  const known = statedPaths.get(file);
  if (known !== undefined) return known;
  const imports: string[] = [];
  const paths: string[] = [];
  const add = ({ source }: { source: { type: string; value?: unknown } | null }) => {
    if (source?.type === "Literal" && typeof source.value === "string") imports.push(source.value);
  };
  new Visitor({
    ImportDeclaration: add,
    ExportNamedDeclaration: add,
    ExportAllDeclaration: add,
    TSImportType: add,
    ImportExpression: (expression) => {
      add(expression);
      if (expression.source.type === "TemplateLiteral") paths.push(...textOf(expression.source));
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
  const stated = { imports, paths };
  statedPaths.set(file, stated);
  return stated;
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

/** The same object with some members replaced. Its own methods run on the original, whose private fields they need. */
export function replaced<Subject extends object>(original: Subject, members: Partial<Subject>): Subject {
  return new Proxy(original, {
    get: (target, name) => {
      if (Object.hasOwn(members, name)) return Reflect.get(members, name);
      const found: unknown = Reflect.get(target, name, target);
      return typeof found === "function" ? found.bind(target) : found;
    },
  });
}

import { ReflectionKind } from "typedoc"

const kinds =
  ReflectionKind.Module |
  ReflectionKind.Function |
  ReflectionKind.Variable |
  ReflectionKind.Class |
  ReflectionKind.Interface |
  ReflectionKind.TypeAlias |
  ReflectionKind.Property |
  ReflectionKind.Method |
  ReflectionKind.Accessor

/** Options that choose among estimators, losses and so on. The name of each is in the table of the choice, and its options have their help. */
const choice = /\.(?:estimator|loss|curriculum|rolloutHooks|memory)\.__type\./

/**
 * Public names, and members of public types, without a comment. None is needed by a property that distinguishes the members of a union by a literal
 * (`kind: "linear"`), a method of a well-known symbol (`await using`), an `AbortSignal` among the arguments of a function, and a member of an inline
 * type that the comment around it names.
 *
 * @param {import("typedoc").ProjectReflection} project
 * @returns {string[]} `gigpo/engine.Completion.tokens`
 */
export function undocumented(project) {
  const names = project
    .getReflectionsByKind(kinds)
    .filter((reflection) => commentsOf(reflection).length === 0 && !needsNone(reflection))
    .map((reflection) => reflection.getFullName())
    .filter((name) => !choice.test(name))
  return [...new Set(names)].sort()
}

function commentsOf({ comment, signatures = [], getSignature, setSignature, type }) {
  const inner = type?.type === "reflection" ? (type.declaration.signatures ?? []) : []
  const all = [comment, ...[...signatures, ...inner, getSignature, setSignature].map((one) => one?.comment)]
  return all.filter((one) => one?.hasVisibleComponent())
}

function needsNone(reflection) {
  const { kind, type, name, parent } = reflection
  if (name.startsWith("[") || (kind === ReflectionKind.Property && type?.type === "literal")) return true
  if (!parent?.kindOf(ReflectionKind.TypeLiteral)) return false
  const around = ancestorsOf(parent)
  if (name === "signal" && around.some((one) => one.kindOf(ReflectionKind.Parameter))) return true
  return around.some((one) => commentsOf(one).some((comment) => textOf(comment).includes(`\`${name}\``)))
}

function ancestorsOf(reflection) {
  return reflection && !reflection.kindOf(ReflectionKind.Module) ? [reflection, ...ancestorsOf(reflection.parent)] : []
}

function textOf({ summary, blockTags }) {
  return [...summary, ...blockTags.flatMap(({ name, content }) => [{ text: `\`${name ?? ""}\`` }, ...content])]
    .map(({ text }) => text)
    .join(" ")
}

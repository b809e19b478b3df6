// Options are checked when they are given: a misspelt one would have no effect, and nobody would know.

/** The same object. TypeError for a name that is none of an option. */
export function checkedOptions<Options extends object>(
  given: Options,
  names: readonly string[],
  of: string,
  cure = "",
): Options {
  for (const name of Object.keys(given)) {
    if (!names.includes(name)) {
      throw new TypeError(`there is no option ${name} of ${of}; there are ${names.join(", ")}${cure}`);
    }
  }
  return given;
}

/** Blocks as tests need them: with the values and columns that are looked at. */
export function block<B>(name: string, values: object = {}, columns: Record<string, ArrayLike<number>> = {}, generation = 1): B {
  const typed = Object.entries(columns).map(([key, column]) => [key, column instanceof Float32Array ? column : Float64Array.from(column)]);
  return { kind: "test", generation, name, values, columns: Object.fromEntries(typed) } as B;
}

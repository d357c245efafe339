/**
 * The table behind a chart, within a disclosure. Its rows are made when it is opened.
 *
 *     <DataTable
 *       caption="Goodput against RTT"
 *       columns={[{ name: "RTT", unit: "ms" }, { name: "cubic", unit: "Mbit/s" }, { name: "note", text: true }]}
 *       rows={() => points.map((p) => [p.x, p.y, "edge"])}
 *     />
 */
import { Disclosure } from "./disclosure";

export interface Column {
  name: string;
  unit?: string;
  /** Whether it has words, at the left; numbers stand at the right. */
  text?: boolean;
}

export type Cell = number | string | null | undefined;

interface Props {
  caption: string;
  columns: readonly Column[];
  rows: () => readonly (readonly Cell[])[];
  /** The disclosure's title. */
  title?: string;
}

/** Most rows that are shown; the export has them all. */
const MOST = 500;

export function DataTable(props: Props) {
  return (
    <Disclosure title={props.title ?? "Table"} class="data">
      {() => <Table {...props} />}
    </Disclosure>
  );
}

/** The table alone, where it is always shown. */
export function Table({ caption, columns, rows }: Props) {
  const all = rows();
  return (
    <>
      <div class="scroll" tabIndex={0} role="region" aria-label={caption}>
        <table>
          <caption>{caption}</caption>
          <thead>
            <tr>
              {columns.map((each, i) => (
                <th key={i} scope="col" class={each.text ? undefined : "n"}>
                  {each.name}
                  {each.unit && <span class="unit"> {each.unit}</span>}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {all.slice(0, MOST).map((row, i) => (
              <tr key={i}>
                {columns.map((each, j) => (
                  <td key={j} class={each.text ? undefined : "n"}>
                    {cell(row[j])}
                  </td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {all.length > MOST && (
        <p class="note">
          The first {MOST} of {all.length} rows; the CSV file has them all.
        </p>
      )}
    </>
  );
}

function cell(value: Cell): string {
  if (value === null || value === undefined || (typeof value === "number" && !Number.isFinite(value))) return "–";
  return typeof value === "number" ? plain(value) : value;
}

/** A number with at most four significant digits, without an exponent where it has few digits: `0.0125`, `42.1`, `12 500`. */
export function plain(value: number): string {
  if (value === 0) return "0";
  const size = Math.abs(value);
  if (size >= 1e9 || size < 1e-4) return value.toExponential(2);
  if (size >= 10000) return Math.round(value).toLocaleString("en").replaceAll(",", "\u202f");
  return String(Number(value.toPrecision(4)));
}

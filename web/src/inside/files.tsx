/** PNG, SVG and CSV of stacked panels as they are shown. */
import type { Look } from "../charts/description";
import type { Theme } from "../charts/draw";
import { Exports } from "../charts/exports";
import type { Link } from "../charts/links";
import { dashOf, type Pen } from "../charts/pen";
import { arranged, drawStack, headOf, MARGIN, type Stacked } from "./stacker";

const WIDTH = 1000;
/** Pixels for the legend, and between a panel and its title. */
const TOP = 28;
const HEAD = 13;

interface Props extends Omit<Stacked, "fits"> {
  /** Name of the files without their ends, and what they show. */
  name: string;
  title: string;
  lines: readonly { label: string; look: Look }[];
  link: Link;
  /** Whether the scales are those of what is shown. */
  fits?: boolean;
  table: () => { columns: string[]; rows: (string | number)[][] };
}

export function StackFiles({ name, title, lines, panels, marks, whole, link, fits = false, table }: Props) {
  const draw = (pen: Pen, width: number, _: number, theme: Theme) => {
    const { areas } = arranged(panels, width);
    let x = MARGIN.left;
    for (const { label, look } of lines) {
      pen.line([x, TOP / 2, x + 24, TOP / 2], { colour: look.colour, width: 2, dash: dashOf(look.dash) });
      pen.text(label, x + 30, TOP / 2, { colour: theme.ink });
      x += 54 + label.length * 8;
    }
    const places = areas.map((area) => ({ ...area, top: area.top + TOP }));
    panels.forEach((panel, place) => pen.text(headOf(panel), 8, (places[place]?.top ?? 0) - HEAD, { colour: theme.ink }));
    drawStack(pen, { panels, marks, whole, fits }, places, link.range.peek() ?? whole, theme);
  };
  const size = { width: WIDTH, height: TOP + arranged(panels, WIDTH).height };
  return <Exports name={name} title={title} draw={draw} size={size} table={table} />;
}

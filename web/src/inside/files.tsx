/** PNG, SVG and CSV of stacked panels as they are shown. */
import type { Look, Mark, Range } from "../charts/description";
import type { Theme } from "../charts/draw";
import { Exports } from "../charts/exports";
import { View } from "../charts/lines";
import type { Link } from "../charts/links";
import { dashOf, type Pen } from "../charts/pen";
import { transform, yRange } from "../charts/scales";
import { arranged, drawLabels, drawPanel, fitted, headOf, MARGIN, type Panel } from "./stacker";

const WIDTH = 1000;
/** Pixels for the legend, and between a panel and its title. */
const TOP = 28;
const HEAD = 13;

interface Props {
  /** Name of the files without their ends, and what they show. */
  name: string;
  title: string;
  lines: readonly { label: string; look: Look }[];
  panels: readonly Panel[];
  marks: readonly Mark[];
  whole: Range;
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
    panels.forEach((panel, place) => {
      const area = areas[place];
      if (!area) return;
      const { chart } = panel;
      const moved = { ...area, top: area.top + TOP };
      const shown = link.range.peek() ?? whole;
      const view = new View(moved, shown, (fits && fitted(panel, shown)) || yRange(chart), transform(chart.x), transform(chart.y));
      pen.text(headOf(panel), 8, moved.top - HEAD, { colour: theme.ink });
      drawPanel(pen, panel, view, theme, place === panels.length - 1, marks);
      if (place === 0) drawLabels(pen, marks, view, theme, TOP);
    });
  };
  const size = { width: WIDTH, height: TOP + arranged(panels, WIDTH).height };
  return <Exports name={name} title={title} draw={draw} size={size} table={table} />;
}

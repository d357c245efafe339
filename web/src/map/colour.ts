/**
 * The colours of maps: for a ratio from the hue of one congestion control over a neutral one to the hue of the other, for everything else one scale from dark
 * to bright (the stops of cividis, Nuñez, Anderton and Renslow 2018), which people with any kind of colour vision read alike. Mixed in OKLab (Ottosson 2020).
 */
import type { Theme } from "../charts/draw";
import type { MapGrid } from "../server/contract";

type Lab = readonly [number, number, number];

export interface Scale {
  /** The colour of a value. */
  at(value: number): string;
  /** The colour at a share of the scale, from 0 to 1. */
  share(share: number): string;
  /** Values at both ends; what is beyond has the colour of the end. */
  from: number;
  to: number;
  log: boolean;
  /** Values that the legend names. */
  ticks: number[];
}

/** The ratio, and its inverse, at which the colour is full. */
const FULL = 4;
const CIVIDIS = ["#00224e", "#123570", "#3b496c", "#575d6d", "#707173", "#8a8678", "#a59c74", "#c3b369", "#e1cc55", "#fee838"];
/** Hues for two congestion controls whose own are not told apart by everybody. */
const APART = ["#d68000", "#2467b3"] as const;
/** Where the hue of a control is on its half of the scale; beyond it becomes deeper. */
const HUE_AT = 0.72;
/** How much of white or black the full end has. */
const DEEPER = 0.3;
/** Distance in OKLab from which two hues are told apart. */
const TOLD_APART = 0.12;
/** How colours look to those who lack a kind of cone: rows of a matrix on linear RGB (Machado, Oliveira and Fernandes 2009, severity 1). */
const EYES: readonly (readonly (readonly [number, number, number])[])[] = [
  [
    [1, 0, 0],
    [0, 1, 0],
    [0, 0, 1],
  ],
  [
    [0.152286, 1.052583, -0.204868],
    [0.114503, 0.786281, 0.099216],
    [-0.003882, -0.048116, 1.051998],
  ],
  [
    [0.367322, 0.860646, -0.227968],
    [0.280085, 0.672501, 0.047413],
    [-0.01182, 0.04294, 0.968881],
  ],
  [
    [1.255528, -0.076749, -0.178779],
    [-0.078411, 0.930809, 0.147602],
    [0.004733, 0.691367, 0.3039],
  ],
];

/** A ratio's scale: `first` is the colour where the first control carries more. */
export function ratioScale(first: string, second: string, theme: Theme): Scale {
  const [one, other] = hues(first, second);
  const dark = lab(theme.ground)[0] < 0.5;
  const middle = dark ? "#262b30" : "#f4f2ee";
  const end = (hue: string) => mix(lab(hue), lab(dark ? "#ffffff" : "#000000"), DEEPER);
  const half = (hue: string): Lab[] => [lab(middle), lab(hue), end(hue)];
  const [left, right] = [half(other), half(one)];
  const share = (place: number) => {
    const away = Math.abs(2 * place - 1);
    const [from, hue, full] = (place < 0.5 ? left : right) as [Lab, Lab, Lab];
    return css(away < HUE_AT ? mix(from, hue, away / HUE_AT) : mix(hue, full, (away - HUE_AT) / (1 - HUE_AT)));
  };
  return scale(share, 1 / FULL, FULL, true, [1 / FULL, 1 / 2, 1, 2, FULL]);
}

/** The scale of any other quantity, over these values. */
export function plainScale(quantity: MapGrid["quantity"], values: ArrayLike<number>): Scale {
  const stops = CIVIDIS.map(lab);
  const share = (place: number) => {
    const at = Math.min(1, Math.max(0, place)) * (stops.length - 1);
    const stop = Math.min(stops.length - 2, Math.floor(at));
    return css(mix(stops[stop] as Lab, stops[stop + 1] as Lab, at - stop));
  };
  if (quantity === "retention") return scale(share, 0, 1, false, [0, 0.25, 0.5, 0.75, 1]);
  let largest = 0;
  for (let i = 0; i < values.length; i += 1) if (Number.isFinite(values[i])) largest = Math.max(largest, values[i] as number);
  const to = round(largest) || 1;
  return scale(
    share,
    0,
    to,
    false,
    [0, 0.25, 0.5, 0.75, 1].map((part) => part * to),
  );
}

function scale(share: (place: number) => string, from: number, to: number, log: boolean, ticks: number[]): Scale {
  return { share, from, to, log, ticks, at: (value) => share(placeOn({ from, to, log }, value)) };
}

/** Where a value is on a scale, from 0 to 1. */
export function placeOn({ from, to, log }: Pick<Scale, "from" | "to" | "log">, value: number): number {
  const place = log ? Math.log(Math.max(value, 1e-300) / from) / Math.log(to / from) : (value - from) / (to - from);
  return Math.min(1, Math.max(0, place));
}

/** The least value that is four times 1, 2 or 5 of a power of ten over it, so that quarters are round. */
function round(value: number): number {
  if (!(value > 0)) return 0;
  const step = value / 4;
  const power = 10 ** Math.floor(Math.log10(step));
  return 4 * power * ([1, 1.25, 1.5, 2, 2.5, 3, 4, 5, 7.5, 10].find((each) => each * power >= step * (1 - 1e-9)) ?? 10);
}

/** The hues of two controls, or two that are told apart, each on the side of the control whose hue is nearer. */
function hues(first: string, second: string): readonly [string, string] {
  if (apart(first, second) >= TOLD_APART) return [first, second];
  const [warm, cold] = APART;
  return apart(first, warm) + apart(second, cold) <= apart(first, cold) + apart(second, warm) ? [warm, cold] : [cold, warm];
}

/** The least distance of two colours for any kind of eyes. */
export function apart(one: string, other: string): number {
  return Math.min(
    ...EYES.map((eye) => {
      const [a, b] = [lab(seen(one, eye)), lab(seen(other, eye))];
      return Math.hypot(a[0] - b[0], a[1] - b[1], a[2] - b[2]);
    }),
  );
}

function seen(hex: string, eye: (typeof EYES)[number]): string {
  const light = rgb(hex);
  return hexOf(eye.map((row) => row.reduce((sum, weight, i) => sum + weight * (light[i] as number), 0)));
}

/** Linear red, green and blue of `#rrggbb`, and back. */
function rgb(hex: string): [number, number, number] {
  return [1, 3, 5].map((at) => linear(parseInt(hex.slice(at, at + 2), 16) / 255)) as [number, number, number];
}

function hexOf(parts: readonly number[]): string {
  return `#${parts
    .map((part) =>
      Math.round(255 * gamma(Math.min(1, Math.max(0, part))))
        .toString(16)
        .padStart(2, "0"),
    )
    .join("")}`;
}

/** A colour `#rrggbb` in OKLab. */
export function lab(hex: string): Lab {
  const [r, g, b] = rgb(hex);
  const l = Math.cbrt(0.4122214708 * r + 0.5363325363 * g + 0.0514459929 * b);
  const m = Math.cbrt(0.2119034982 * r + 0.6806995451 * g + 0.1073969566 * b);
  const s = Math.cbrt(0.0883024619 * r + 0.2817188376 * g + 0.6299787005 * b);
  return [
    0.2104542553 * l + 0.793617785 * m - 0.0040720468 * s,
    1.9779984951 * l - 2.428592205 * m + 0.4505937099 * s,
    0.0259040371 * l + 0.7827717662 * m - 0.808675766 * s,
  ];
}

/** A colour in OKLab as `#rrggbb`. */
export function css([light, a, b]: Lab): string {
  const l = (light + 0.3963377774 * a + 0.2158037573 * b) ** 3;
  const m = (light - 0.1055613458 * a - 0.0638541728 * b) ** 3;
  const s = (light - 0.0894841775 * a - 1.291485548 * b) ** 3;
  return hexOf([
    4.0767416621 * l - 3.3077115913 * m + 0.2309699292 * s,
    -1.2684380046 * l + 2.6097574011 * m - 0.3413193965 * s,
    -0.0041960863 * l - 0.7034186147 * m + 1.707614701 * s,
  ]);
}

function mix(from: Lab, to: Lab, share: number): Lab {
  return [from[0] + share * (to[0] - from[0]), from[1] + share * (to[1] - from[1]), from[2] + share * (to[2] - from[2])];
}

function linear(part: number): number {
  return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
}

function gamma(part: number): number {
  return part <= 0.0031308 ? part * 12.92 : 1.055 * part ** (1 / 2.4) - 0.055;
}

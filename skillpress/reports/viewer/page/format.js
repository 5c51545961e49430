// Numbers for readers: a real minus sign, separated thousands, no meaningless digits.

const GROUPED = new Intl.NumberFormat("en");

export function whole(number) {
  return GROUPED.format(number).replace("-", "−");
}

export function figure(number, digits = 3) {
  if (number === null || number === undefined) return "–";
  const size = Math.abs(number);
  if (size > 1e-9 && size < 0.5 * 10 ** -digits) return number.toPrecision(2).replaceAll("-", "−");
  const rounded = Number(number.toFixed(digits));
  if (Number.isInteger(rounded)) return whole(rounded === 0 ? 0 : rounded);
  return rounded.toString().replace("-", "−");
}

export function signed(number, digits = 3) {
  const text = figure(number, digits);
  return Number(number) > 0 && text !== "0" ? "+" + text : text;
}

export function percent(share) {
  if (share >= 0.9995) return "100%";
  if (share < 0.001) return "<0.1%";
  return (100 * share).toFixed(share < 0.1 || share > 0.99 ? 1 : 0) + "%";
}

export function count(number, one, many = one + "s") {
  return `${whole(number)} ${number === 1 ? one : many}`;
}

/** Times of the sidecar, which are in UTC, as the user's clock shows them. Pure. */

const two = (number: number) => String(number).padStart(2, "0");

/** The time of the day. */
export function clock(time: string): string {
  const date = new Date(time);
  return Number.isNaN(date.getTime())
    ? time
    : `${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}`;
}

/** The day and the time. */
export function when(time: string): string {
  const date = new Date(time);
  return Number.isNaN(date.getTime())
    ? time
    : `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())} ${clock(time)}`;
}

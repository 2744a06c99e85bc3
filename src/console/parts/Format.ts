/** Numbers, times and ids as people read them. Pure. */

const counts = new Intl.NumberFormat("en-US")

export const count = (value: number): string => counts.format(value)

/** `1 event`, `2 events`. */
export const counted = (value: number, one: string, many = `${one}s`): string =>
  `${count(value)} ${value === 1 ? one : many}`

const two = (value: number): string => String(value).padStart(2, "0")

const parts = (at: Date, zone: "UTC" | "local") =>
  zone === "UTC"
    ? {
        day: [at.getUTCFullYear(), at.getUTCMonth() + 1, at.getUTCDate()] as const,
        time: [at.getUTCHours(), at.getUTCMinutes(), at.getUTCSeconds()] as const
      }
    : {
        day: [at.getFullYear(), at.getMonth() + 1, at.getDate()] as const,
        time: [at.getHours(), at.getMinutes(), at.getSeconds()] as const
      }

/** `11-21 17:34:35.540`, with the year if it is not this one. */
export const shortTime = (iso: string, zone: "UTC" | "local", now: Date = new Date()): string => {
  const at = new Date(iso)
  if (Number.isNaN(at.getTime())) return iso
  const { day, time } = parts(at, zone)
  const [year, month, date] = day
  const isThisYear = year === parts(now, zone).day[0]
  const milliseconds = /\.(\d{1,3})/.exec(iso)?.[1]?.padEnd(3, "0") ?? "000"
  return (
    `${isThisYear ? "" : `${year}-`}${two(month)}-${two(date)} `
    + `${time.map(two).join(":")}.${milliseconds}`
  )
}

/** `12 s ago`, `3 min ago`, `5 h ago`, `9 days ago`; `in …` for what is to come. */
export const relativeTime = (milliseconds: number): string => {
  const seconds = Math.round(Math.abs(milliseconds) / 1_000)
  const text =
    seconds < 60
      ? `${seconds} s`
      : seconds < 3_600
        ? `${Math.floor(seconds / 60)} min`
        : seconds < 172_800
          ? `${Math.floor(seconds / 3_600)} h`
          : `${Math.floor(seconds / 86_400)} days`
  return milliseconds < 0 ? `in ${text}` : `${text} ago`
}

export { duration } from "../../domain/Duration.ts"

const SHORT_LENGTH = 20

/** The middle of a long id left out: its ends are what people compare. */
export const shortId = (id: string, length = SHORT_LENGTH): string => {
  const characters = [...id]
  if (characters.length <= length) return id
  const half = Math.floor((length - 1) / 2)
  return `${characters.slice(0, half).join("")}…${characters.slice(-half).join("")}`
}

/** Bytes as `950 B`, `12.5 KB`, `3.2 MB`. */
export const bytes = (value: number): string => {
  if (value < 1_000) return `${value} B`
  const units = ["KB", "MB", "GB", "TB"]
  let scaled = value
  let unit = -1
  while (scaled >= 1_000 && unit < units.length - 1) {
    scaled /= 1_000
    unit += 1
  }
  return `${scaled < 100 ? scaled.toFixed(1) : Math.round(scaled)} ${units[unit]}`
}

/** Words before a name, which is written as it is: `actor.id` and `where:` begin no sentence. */
const WORD = /^[a-z]+(?=[ ,;]|$)/

/** A message of the service, which has neither a capital letter nor a full stop, as a sentence. */
export const sentence = (message: string): string => {
  const begun = message.replace(WORD, (word) => word[0]!.toUpperCase() + word.slice(1))
  return /[.!?…]$/.test(begun) ? begun : `${begun}.`
}

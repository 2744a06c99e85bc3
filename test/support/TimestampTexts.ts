/** Texts that are timestamps, or nearly. */
import fc from "fast-check"

const pad = (value: number, width = 2): string => String(value).padStart(width, "0")

/** Mostly near the truth: dates that don't quite exist, hours that are one too many. */
export const almost = fc
  .record({
    year: fc.oneof(fc.integer({ min: 1968, max: 2263 }), fc.integer({ min: 0, max: 9999 })),
    month: fc.integer({ min: 0, max: 13 }),
    day: fc.integer({ min: 0, max: 32 }),
    hour: fc.integer({ min: 0, max: 24 }),
    minute: fc.integer({ min: 0, max: 60 }),
    second: fc.integer({ min: 0, max: 60 }),
    fraction: fc.stringMatching(/^(\.\d{1,9})?$/),
    mark: fc.constantFrom("T", "T", "t", " "),
    zone: fc.oneof(
      fc.constantFrom("Z", "z", "+00:00", "-00:00", ""),
      fc
        .tuple(fc.constantFrom("+", "-"), fc.nat({ max: 24 }), fc.nat({ max: 60 }))
        .map(([sign, hours, minutes]) => `${sign}${pad(hours)}:${pad(minutes)}`)
    )
  })
  .map(
    (part) =>
      `${pad(part.year, 4)}-${pad(part.month)}-${pad(part.day)}${part.mark}${pad(part.hour)}:`
      + `${pad(part.minute)}:${pad(part.second)}${part.fraction}${part.zone}`
  )

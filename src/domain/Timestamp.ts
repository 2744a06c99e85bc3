/** Interim. */
export const nowMicros = (): number => Math.round((performance.timeOrigin + performance.now()) * 1000)
export const formatMicros = (micros: number | bigint): string => { const m = Number(micros); return new Date(Math.floor(m / 1000)).toISOString().slice(0, -1) + String(m % 1000).padStart(3, "0") + "Z" }
export const microsOf = (text: string): number => Date.parse(text.slice(0, 23) + "Z") * 1000 + Number(text.slice(23, 26))

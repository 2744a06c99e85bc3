/** The time as a component sees it, which is drawn again as it goes on. */
import { useEffect, useState } from "preact/hooks"

/** Milliseconds since 1970, renewed every so many milliseconds. */
export const useNow = (everyMs: number): number => {
  const [now, setNow] = useState(Date.now)
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), everyMs)
    return () => clearInterval(timer)
  }, [everyMs])
  return Math.max(now, Date.now())
}

/** A text as a QR code, drawn from its modules. The encoder is loaded when the first one is shown. */
import { useEffect, useState } from "preact/hooks"

/** Modules of empty margin: readers need four. */
const MARGIN = 4

/** One path for all dark modules: a square each. */
const pathOf = (modules: ReadonlyArray<ReadonlyArray<boolean>>): string =>
  modules.flatMap((row, y) => row.map((isDark, x) => (isDark ? `M${x} ${y}h1v1h-1z` : ""))).join("")

/** Dark on white in both colour schemes: many readers know nothing else. */
export const QrCode = ({ label, text }: { readonly text: string; readonly label: string }) => {
  const [modules, setModules] = useState<ReadonlyArray<ReadonlyArray<boolean>> | undefined>()
  const [isMissing, setIsMissing] = useState(false)
  useEffect(() => {
    let isWanted = true
    import("qr").then(
      ({ encodeQR }) => {
        if (isWanted) setModules(encodeQR(text, "raw", { border: MARGIN, ecc: "medium" }))
      },
      () => setIsMissing(true)
    )
    return () => {
      isWanted = false
    }
  }, [text])
  if (isMissing) return <p class="faint">The QR code could not be loaded.</p>
  const size = modules?.length ?? 1
  return (
    <svg class="qr" viewBox={`0 0 ${size} ${size}`} role="img" aria-label={label}>
      <rect class="light" width={size} height={size} />
      {modules === undefined ? undefined : (
        <path class="dark" d={pathOf(modules)} shape-rendering="crispEdges" />
      )}
    </svg>
  )
}

/**
 * Where the links of a page lead when the service shows it: to other pages of the guide, to
 * documents that the service publishes, or nowhere, as the repository's files are not served.
 */
import { posix } from "node:path"
import { GUIDE_PATH } from "./GuidePaths.ts"

/** An address to link to, or the path of a file that can only be named. */
export type GuideLink =
  | { readonly is: "address"; readonly href: string }
  | { readonly is: "file"; readonly path: string }

/** What of a guide links can lead to. */
export interface Linkable {
  /** Names of pages, by their files from `docs` on. */
  readonly names: ReadonlyMap<string, string>
  /** Paths of pictures from `docs` on. */
  readonly pictures: ReadonlySet<string>
}

/** Files of the repository that the service publishes, and where. */
const published: Readonly<Record<string, string>> = {
  "schemas/openapi.json": "/openapi.json",
  "schemas/asyncapi.yaml": "/asyncapi.yaml"
}

const DOCS_FOLDER = "docs/"

const address = (href: string): GuideLink => ({ is: "address", href })

/** Where `target`, as it is written in the page of the file `from`, leads. */
export const guideLinkOf = (target: string, from: string, linkable: Linkable): GuideLink => {
  if (/^(?:https?:\/\/|\/(?!\/)|#)/.test(target)) return address(target)
  if (/^(?:[a-z][a-z\d+.-]*:|\/\/)/i.test(target)) return { is: "file", path: target }
  const [file = "", anchor] = target.split("#")
  const path = posix.join(DOCS_FOLDER, posix.dirname(from), file)
  const inDocs = path.startsWith(DOCS_FOLDER) ? path.slice(DOCS_FOLDER.length) : undefined
  const name = inDocs === undefined ? undefined : linkable.names.get(inDocs)
  if (name !== undefined) {
    return address(`${GUIDE_PATH}/${name}${anchor === undefined ? "" : `#${anchor}`}`)
  }
  if (inDocs !== undefined && linkable.pictures.has(inDocs)) {
    return address(`${GUIDE_PATH}/${inDocs}`)
  }
  const elsewhere = published[path]
  return elsewhere === undefined ? { is: "file", path } : address(elsewhere)
}

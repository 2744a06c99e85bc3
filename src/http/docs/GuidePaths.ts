/** The addresses of the guide. They need no key, and are not part of the contract. */

export const GUIDE_PATH = "/docs/guide"
/** The list of pages for programs that read, as llmstxt.org describes it. */
export const LLMS_PATH = "/llms.txt"

/** As they are routed: the router takes the address of the guide itself as part of the first. */
export const guideRoutes = [`${GUIDE_PATH}/*`, LLMS_PATH] as const

export const guidePaths = [GUIDE_PATH, ...guideRoutes] as const

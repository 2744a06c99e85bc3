/** Addresses that lead to the machine of the reader. Pure. */

const NAMES = /^(?:localhost|.+\.localhost|127\.\d+\.\d+\.\d+|\[::1\])$/

export const isLoopback = (url: string): boolean => NAMES.test(new URL(url).hostname)

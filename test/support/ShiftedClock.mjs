/** Loaded before a program, sets its clock by TEST_CLOCK_SHIFT_MS milliseconds. */
const shift = Number(process.env.TEST_CLOCK_SHIFT_MS ?? 0)
const RealDate = Date
const realNow = RealDate.now.bind(RealDate)

globalThis.Date = class extends RealDate {
  constructor(...given) {
    if (given.length === 0) super(realNow() + shift)
    else super(...given)
  }

  static now() {
    return realNow() + shift
  }
}

/** The forms of ids that clients choose. */

/** Characters of an id that a client chooses. */
export const ID_LENGTH_MAX = 256

/** Characters of the id of an actor or a resource, which has it from another system. */
export const PARTY_ID_LENGTH_MAX = 1_024

/** Form of ids from clients: whole Unicode characters, no control characters. */
export const CLIENT_ID_FORM = /^[^\u0000-\u001f\u007f-\u009f\ud800-\udfff]{1,256}$/u
/** The same, of an actor or a resource. */
export const PARTY_ID_FORM = /^[^\u0000-\u001f\u007f-\u009f\ud800-\udfff]{1,1024}$/u

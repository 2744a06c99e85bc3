/** Signed notes against published ones, and every way in which a note may be no checkpoint. */
import { generateKeyPairSync } from "node:crypto"
import { assert, describe, it } from "@effect/vitest"
import {
  makeCheckpoint,
  type OpenedNote,
  openNote,
  SigningKeyInvalid,
  signerOf,
  VkeyInvalid
} from "../../../src/domain/chain/Checkpoint.ts"
import { EMPTY_ROOT, Frontier } from "../../../src/domain/chain/MerkleTree.ts"

// golang.org/x/mod/sumdb/note, note_test.go.
const peterKey = "PeterNeumann+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW"
const peterSeed = Buffer.from("AYEKFALVFGyNhPJEMzD1QIDr+Y7hfZx09iUvxdXHKDFz", "base64").subarray(1)
const enochKey = "EnochRoot+af0cfe78+ATtqJ7zOtqQtYqOo0CpvDXNlMhV3HeJDpjrASKGLWdop"
const proverb =
  "If you think cryptography is the answer to your problem,\n"
  + "then you don't know what your problem is.\n"
const peterSignature =
  "— PeterNeumann x08go/ZJkuBS9UG/SffcvIAQxVBtiFupLLr8pAcElZInNIuGUgYN1FFYC2pZSNXgKvqfqdngotpRZb6K"
  + "E6RyyBwJnAM=\n"
const enochSignature =
  "— EnochRoot rwz+eBzmZa0SO3NbfRGzPCpDckykFXSdeX+MNtCOXm2/5n2tiOHp+vAF1aGrQ5ovTG01oOTGwnWLox33WWd1"
  + "RvMc+QQ=\n"

// The checksum database of Go: its published key, and a tree that it signed.
const goKey = "sum.golang.org+033de0ae+Ac4zctda0e5eza+HJyk9SxEdh+s3Ux18htTTAD8OuAn8"
const goNote =
  "go.sum database tree\n20852163\nCsUYapGGPo4dkMgIAUqom/Xajj7h2fB2MPA3j2jxq2I=\n\n"
  + "— sum.golang.org Az3grlgtzPICa5OS8npVmf1Myq/5IZniMp+ZJurmRDeOoRDe4URYN7u5/Zhcyv2q1gGzGku9nTo+zyW"
  + "E+xeMcTOAYQ8=\n"

const refusalOf = (opened: OpenedNote): string =>
  "refusal" in opened ? opened.refusal : `opened ${opened.checkpoint.origin}`

const own = signerOf("alk", Buffer.alloc(32, 1))
const other = signerOf("alk", Buffer.alloc(32, 2))
const witness = signerOf("witness.example/1", Buffer.alloc(32, 3))

const frontier = Frontier.empty()
for (let index = 0; index < 5; index++) frontier.append(String(index).repeat(64))
const record = makeCheckpoint(own, "alk", "acme", frontier, "2026-01-01T00:00:00.000000Z")
const [text = ""] = record.note.split(/(?<=\n)\n/)

const signedText = (changed: string) => `${changed}\n${own.sign(changed)}`

describe("published notes", () => {
  it("are what this signer makes of the same key and text", () => {
    const signer = signerOf("PeterNeumann", peterSeed)
    assert.strictEqual(signer.vkey, peterKey)
    assert.strictEqual(signer.keyId, "c74f20a3")
    assert.strictEqual(signer.sign(proverb), peterSignature)
  })

  it("are verified by one key, by the other, and by both", () => {
    const note = `${proverb}\n${peterSignature}${enochSignature}`
    // The signatures hold, only that a proverb is no tree.
    for (const keys of [[peterKey], [enochKey], [enochKey, peterKey]]) {
      const opened = openNote(note, keys)
      assert("refusal" in opened)
      assert.strictEqual(opened.message, "its text is not a checkpoint")
      const changed = note.replace("answer", "Answer")
      assert.strictEqual(refusalOf(openNote(changed, keys)), "bad_signature")
    }
    assert.strictEqual(refusalOf(openNote(note, [goKey])), "unknown_key")
    assert.strictEqual(refusalOf(openNote(note, [])), "unknown_key")
  })

  it("open where they are trees of a public log", () => {
    assert.deepStrictEqual(openNote(goNote, [peterKey, goKey]), {
      checkpoint: {
        origin: "go.sum database tree",
        treeSize: 20_852_163,
        rootHash: "0ac5186a91863e8e1d90c808014aa89bf5da8e3ee1d9f07630f0378f68f1ab62",
        extensions: [],
        keyIds: ["033de0ae"]
      }
    })
    const larger = goNote.replace("20852163", "20852164")
    assert.strictEqual(refusalOf(openNote(larger, [goKey])), "bad_signature")
  })
})

describe("a checkpoint", () => {
  it("says origin, size and root, and who signed", () => {
    assert.strictEqual(text, `alk/acme\n5\n${frontier.root().toString("base64")}\n`)
    assert.deepInclude(record, {
      tenant_id: "acme",
      tree_size: 5,
      root_hash: frontier.root().toString("hex"),
      key_id: own.keyId
    })
    assert.match(record.note, /^alk\/acme\n5\n[A-Za-z0-9+/]{43}=\n\n— alk [A-Za-z0-9+/]{91}=\n$/)
    assert.deepStrictEqual(openNote(record.note, [own.vkey]), {
      checkpoint: {
        origin: "alk/acme",
        treeSize: 5,
        rootHash: record.root_hash,
        extensions: [],
        keyIds: [own.keyId]
      }
    })
  })

  it("of no events has the empty root, and no other", () => {
    const empty = makeCheckpoint(own, "alk", "acme", Frontier.empty(), record.created_at)
    const opened = openNote(empty.note, [own.vkey])
    assert("checkpoint" in opened)
    assert.strictEqual(opened.checkpoint.rootHash, EMPTY_ROOT.toString("hex"))
    const forged = signedText(`alk/acme\n0\n${frontier.root().toString("base64")}\n`)
    assert.strictEqual(refusalOf(openNote(forged, [own.vkey])), "malformed")
  })

  it("is refused with any one character of its text changed", () => {
    for (let at = 0; at < text.length; at++) {
      for (const change of ["0", "A", "\n", ""]) {
        if (text[at] === change) continue
        const note = record.note.slice(0, at) + change + record.note.slice(at + 1)
        assert.notMatch(refusalOf(openNote(note, [own.vkey])), /^opened/, JSON.stringify(note))
      }
    }
  })

  it("is refused with any one character of its signature changed", () => {
    const start = record.note.indexOf("—")
    for (let at = start; at < record.note.length; at++) {
      const change = record.note[at] === "A" ? "B" : "A"
      const note = record.note.slice(0, at) + change + record.note.slice(at + 1)
      assert.notMatch(refusalOf(openNote(note, [own.vkey])), /^opened/, JSON.stringify(note))
    }
  })

  it("needs a known key; signatures of others are passed over", () => {
    const signature = own.sign(text)
    const [foreign, stranger] = [other.sign(text), witness.sign(text)]
    const keyIds = (note: string, ...vkeys: ReadonlyArray<string>) => {
      const opened = openNote(note, vkeys)
      return "checkpoint" in opened ? opened.checkpoint.keyIds : opened.refusal
    }
    const all = `${text}\n${foreign}${stranger}${signature}`
    assert.strictEqual(keyIds(record.note, other.vkey, witness.vkey), "unknown_key")
    assert.deepStrictEqual(keyIds(all, own.vkey), [own.keyId])
    assert.deepStrictEqual(keyIds(all, own.vkey, other.vkey, witness.vkey), [
      other.keyId,
      witness.keyId,
      own.keyId
    ])
    assert.deepStrictEqual(keyIds(`${text}\n${signature}${signature}`, own.vkey), [own.keyId])
    // Of the known ones, none may be of another text, wherever it stands.
    const old = own.sign(text.replace("5", "4"))
    assert.strictEqual(keyIds(`${text}\n${old}`, own.vkey), "bad_signature")
    assert.strictEqual(keyIds(`${text}\n${foreign}${old}`, own.vkey, other.vkey), "bad_signature")
    assert.deepStrictEqual(keyIds(`${text}\n${foreign}${old}`, other.vkey), [other.keyId])
    // The key id of one key before the signature of another.
    const mixed = foreign.replace(foreign.slice(6, 11), signature.slice(6, 11))
    assert.notDeepEqual(keyIds(`${text}\n${mixed}`, own.vkey), [own.keyId])
    // Another name for the same key is another key.
    const renamed = signature.replace("— alk ", "— alk2 ")
    assert.strictEqual(keyIds(`${text}\n${renamed}`, own.vkey), "unknown_key")
  })

  it("is refused where it is no signed note", () => {
    const signature = own.sign(text)
    const refused = [
      "",
      "\n\n",
      text,
      `${text}\n`,
      `${text}${signature}`,
      record.note.slice(0, -1),
      `${record.note}unexpected\n`,
      `${record.note}\n`,
      record.note.replace("— alk ", "- alk "),
      record.note.replace("— alk ", "—  alk "),
      record.note.replace("— alk ", "— a+k "),
      record.note.replace("— alk ", "— a k "),
      `\u0001${record.note}`,
      record.note.replaceAll("\n", "\r\n"),
      `${record.note}— alk AAAA\n`,
      `\ud800${record.note}`,
      `${text}\n${signature.repeat(101)}`,
      `${text}${"x\n".repeat(600_000)}\n${signature}`
    ]
    for (const note of refused) {
      const shown = JSON.stringify(note).slice(0, 200)
      assert.strictEqual(refusalOf(openNote(note, [own.vkey])), "malformed", shown)
    }
  })

  it("is refused where its signed text is no checkpoint", () => {
    const root = frontier.root().toString("base64")
    const refused = [
      `alk/acme\n5\n`,
      `alk/acme\n5\n${root.slice(0, -1)}\n`,
      `alk/acme\n5\n${root.slice(0, 40)}\n`,
      `alk/acme\n5\n${frontier.root().toString("hex")}\n`,
      `alk/acme\n05\n${root}\n`,
      `alk/acme\n-5\n${root}\n`,
      `alk/acme\n5.0\n${root}\n`,
      `alk/acme\n 5\n${root}\n`,
      `alk/acme\n9007199254740992\n${root}\n`,
      `alk/acme\n\n5\n${root}\n`,
      `\nalk/acme\n5\n${root}\n`
    ]
    for (const changed of refused) {
      const opened = openNote(signedText(changed), [own.vkey])
      assert.strictEqual(refusalOf(opened), "malformed", JSON.stringify(changed))
    }
    const extended = openNote(signedText(`${text}an extension\n`), [own.vkey])
    assert.strictEqual(refusalOf(extended), "opened alk/acme")
  })
})

describe("keys", () => {
  it("come from PKCS#8 PEM or from the seed alone, and are the same", () => {
    const { privateKey, publicKey } = generateKeyPairSync("ed25519")
    const pem = privateKey.export({ format: "pem", type: "pkcs8" }).toString()
    const seed = Buffer.from(privateKey.export({ format: "jwk" }).d!, "base64url")
    const [first, second] = [signerOf("alk", pem), signerOf("alk", seed)]
    assert.strictEqual(first.vkey, second.vkey)
    assert.strictEqual(first.sign(text), second.sign(text))
    const raw = Buffer.from(publicKey.export({ format: "jwk" }).x!, "base64url")
    assert.strictEqual(first.publicKey, raw.toString("base64"))
    assert.notProperty(first, "privateKey")
    assert.notInclude(JSON.stringify(first), seed.toString("base64"))
  })

  it("are refused without a word of what they hold", () => {
    const rsa = generateKeyPairSync("rsa", { modulusLength: 2048 }).privateKey
    const ec = generateKeyPairSync("ed448").privateKey
    const refused = [
      "",
      "no key, but a secret",
      Buffer.alloc(31),
      Buffer.alloc(33),
      rsa.export({ format: "pem", type: "pkcs8" }).toString(),
      ec.export({ format: "pem", type: "pkcs8" }).toString()
    ]
    for (const key of refused) {
      const thrown = (() => {
        try {
          return signerOf("alk", key)
        } catch (error) {
          return error
        }
      })()
      assert.instanceOf(thrown, SigningKeyInvalid)
      assert.notInclude(String(thrown), "secret")
    }
    for (const name of ["", "a b", "a+b", "a\n"]) {
      assert.throws(() => signerOf(name, Buffer.alloc(32, 1)), SigningKeyInvalid)
    }
  })

  it("are not taken from a text that is none", () => {
    const refused = [
      "",
      peterKey.slice(1),
      peterKey.slice(0, -1),
      peterKey.replace("c74f20a3", "c74f20a4"),
      `${peterKey}==`,
      // The right length or the right type, with key ids that fit (note_test.go).
      "PeterNeumann+cc469956+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TWBADKEY==",
      "PeterNeumann+173116ae+ZRpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW"
    ]
    for (const vkey of refused) {
      assert.throws(() => openNote(record.note, [own.vkey, vkey]), VkeyInvalid)
    }
  })
})

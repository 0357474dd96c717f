// Package receipts groups what proves a run to somebody else.
//   - receipt makes and verifies the signed record of a run.
//   - receiptkey provides the key that signs.
package receipts

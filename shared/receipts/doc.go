// Package receipts groups the packages that prove to others what a run did.
//   - receipt makes and verifies the signed record of a run.
//   - receiptkey provides the key that signs.
package receipts

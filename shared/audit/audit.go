// Package audit stands in until its room is merged.
package audit

import (
	"fmt"
	"time"
)

const (
	Requested = "requested"
	Decided   = "decided"
	Intent    = "intent"
	Outcome   = "outcome"
	Denied    = "denied"
	Cancelled = "cancelled"
)

type Head struct {
	Seq  int64  `json:"seq"`
	Hash string `json:"hash"`
}
type Entry struct {
	Seq                                                                                                                     int64
	RunID, UID                                                                                                              string
	At                                                                                                                      time.Time
	Kind, ActionID, Tool, Model, InputHash, Decision, Rule, ApprovalID, ExecutionStatus, ErrorCode, Message, PrevHash, Hash string
}

func Seal(h Head, e Entry) (Entry, Head) {
	e.Seq = h.Seq + 1
	e.PrevHash = h.Hash
	e.Hash = fmt.Sprint(e.Seq)
	return e, Head{e.Seq, e.Hash}
}
func Path(run string, seq int64) string { return fmt.Sprintf("audit/%s_%06d", run, seq) }

// Package notice publishes events of runs: an approval was requested, was decided or has expired, an outcome needs its
// user, the run has ended. A notice is an event of CloudEvents 1.0
// (https://github.com/cloudevents/spec/blob/v1.0.2/cloudevents/spec.md). It has IDs, names, times and a link, and never
// content: it is not enough to decide, or to learn the text of a mail.
package notice

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/base/strictjson"
)

// Type is the type of a notice, as CloudEvents has it.
type Type string

// The types.
const (
	ApprovalRequested Type = "run.countersign.approval.requested" // of a call, or of a plan
	ApprovalDecided   Type = "run.countersign.approval.decided"   // also of a review
	ApprovalExpired   Type = "run.countersign.approval.expired"
	ReviewRequested   Type = "run.countersign.review.requested"
	RunEnded          Type = "run.countersign.run.ended" // with it whatever of the run still waited
)

// Types lists all types.
var Types = []Type{ApprovalRequested, ApprovalDecided, ApprovalExpired, ReviewRequested, RunEnded}

// A Notice is one thing that has happened to a run.
type Notice struct {
	ID   string // the same each time that the notice is sent
	Type Type
	Time time.Time
	Data Data
}

// Data is what a notice says. What does not belong to its type is empty.
type Data struct {
	UID      string `json:"uid"` // the run's owner, as their ID tokens name them
	RunID    string `json:"runId"`
	ThreadID string `json:"threadId"`
	Agent    string `json:"agent"`

	ActionID   string       `json:"actionId,omitempty"`
	Tool       string       `json:"tool,omitempty"`
	ApprovalID string       `json:"approvalId,omitempty"`
	Kind       run.Kind     `json:"kind,omitempty"` // of what waits: approval, plan or review
	ExpiresAt  time.Time    `json:"expiresAt,omitzero"`
	Decision   run.Decision `json:"decision,omitempty"`
	HeldUntil  time.Time    `json:"heldUntil,omitzero"` // with a yes: until then it can be undone

	Status    run.Status `json:"status,omitempty"`    // of a run that has ended
	ErrorCode fault.Code `json:"errorCode,omitempty"` // why it has failed

	Link string `json:"link,omitempty"` // to the page where its owner sees it and decides; empty: the console's address is unknown
}

// ErrUnderWay says that notices are being sent, or will be, and that the publisher is to be asked again.
var ErrUnderWay = errors.New("notice: others are being told")

// A Publisher sends notices of one run, in their order. After an error some of them may have been sent. Each is given
// to it again then.
type Publisher interface {
	Publish(ctx context.Context, notices ...Notice) error
}

// After returns what the run's events behind the one with the number have to tell, in their order. The state is that
// after all of them. console is the address of the console, without a slash at its end.
func After(seq int64, r run.Run, s *run.State, events []run.Event, console string) (all []Notice) {
	for _, e := range events[first(events, seq):] {
		if n, ok := of(r, s, e); ok {
			n.Data.Link = Link(console, n.Data.ThreadID)
			all = append(all, n)
		}
	}
	return all
}

// Tells reports whether [After] would return anything.
func Tells(seq int64, s *run.State, events []run.Event) bool {
	for _, e := range events[first(events, seq):] {
		if _, ok := of(run.Run{}, s, e); ok {
			return true
		}
	}
	return false
}

// first returns the index of the first event behind the one with the number. Events are numbered one by one.
func first(events []run.Event, seq int64) int64 {
	if len(events) == 0 {
		return 0
	}
	return min(max(0, seq+1-events[0].Seq), int64(len(events)))
}

// of returns the notice of the event, if the event is published.
func of(r run.Run, s *run.State, e run.Event) (Notice, bool) {
	n := Notice{ID: fmt.Sprintf("%s.%d", r.ID, e.Seq), Time: e.At,
		Data: Data{UID: r.UID, RunID: r.ID, ThreadID: r.ThreadID, Agent: r.AgentName()}}
	a := s.Action(e.ActionID)
	if a != nil {
		n.Data.ActionID, n.Data.Tool, n.Data.ApprovalID = a.ID, a.Tool, a.ApprovalID
	}
	switch {
	case e.Wait != nil && e.Wait.Kind == run.KindReview:
		n.Type = ReviewRequested
	case e.Wait != nil && e.Wait.Kind != run.KindCall:
		n.Type = ApprovalRequested
	case e.Decided != nil:
		n.Type = ApprovalDecided
		n.Data.ApprovalID, n.Data.Decision, n.Data.HeldUntil = e.Decided.ApprovalID, e.Decided.Decision,
			e.Decided.HeldUntil
	case e.Finished != nil && hasExpired(a, e.Finished):
		n.Type = ApprovalExpired
	case e.End != nil:
		n.Type, n.Data.Status = RunEnded, e.End.Status
		if e.End.Error != nil {
			n.Data.ErrorCode = e.End.Error.Code
		}
	default:
		return Notice{}, false
	}
	if e.Wait != nil {
		n.Data.ApprovalID, n.Data.Kind, n.Data.ExpiresAt = e.Wait.ApprovalID, e.Wait.Kind, e.Wait.ExpiresAt
	}
	return n, true
}

// hasExpired reports whether the call was closed because its user had not decided about it in time.
func hasExpired(a *run.Action, f *run.Finished) bool {
	return a != nil && a.ApprovalID != "" && a.Decision == "" && f.Error != nil && f.Error.Code == fault.CodeExpired
}

// Link returns the address of the conversation in the console; empty if the console's address is unknown.
func Link(console, threadID string) string {
	if console == "" {
		return ""
	}
	return console + "/#/t/" + threadID
}

// event is a notice in the JSON format of CloudEvents
// (https://github.com/cloudevents/spec/blob/v1.0.2/cloudevents/formats/json-format.md).
type event struct {
	SpecVersion string    `json:"specversion"`
	ID          string    `json:"id"`
	Source      string    `json:"source"`
	Type        Type      `json:"type"`
	Subject     string    `json:"subject"`
	Time        time.Time `json:"time"`
	ContentType string    `json:"datacontenttype"`
	Data        Data      `json:"data"`
}

// ContentType is the media type of an encoded notice.
const ContentType = "application/cloudevents+json"

// Encode returns the notice as JSON, the same bytes each time.
func (n Notice) Encode(source string) ([]byte, error) {
	return strictjson.Marshal(event{SpecVersion: "1.0", ID: n.ID, Source: source, Type: n.Type, Subject: n.Data.RunID,
		Time: n.Time.UTC(), ContentType: "application/json", Data: n.Data})
}

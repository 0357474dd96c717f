// Package event makes notifications about a run: an approval was requested, decided or expired, an outcome needs the
// user's review, or the run ended. A notification is an event of CloudEvents 1.0
// (https://github.com/cloudevents/spec/blob/v1.0.2/cloudevents/spec.md). It contains IDs, names, times and a link, but
// no content, and nothing can be approved with it.
package event

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/base/strictjson"
)

// Type is the type of a notification, as in CloudEvents.
type Type string

// The types of notifications.
const (
	ApprovalRequested Type = "run.countersign.approval.requested" // of a call, or of a plan
	ApprovalDecided   Type = "run.countersign.approval.decided"   // also of a review
	ApprovalExpired   Type = "run.countersign.approval.expired"
	ReviewRequested   Type = "run.countersign.review.requested"
	RunEnded          Type = "run.countersign.run.ended" // everything that still waited in the run has ended with it
)

// Types lists all types.
var Types = []Type{ApprovalRequested, ApprovalDecided, ApprovalExpired, ReviewRequested, RunEnded}

// An Event is a notification about one event of a run.
type Event struct {
	ID   string // the same each time that the notification is sent
	Type Type
	Time time.Time
	Data Data
}

// Data is the content of a notification. Fields that do not belong to its type are empty.
type Data struct {
	UID      string `json:"uid"` // the run's owner: the subject of their ID tokens
	RunID    string `json:"runId"`
	ThreadID string `json:"threadId"`
	Agent    string `json:"agent"`

	ActionID   string       `json:"actionId,omitempty"`
	Tool       string       `json:"tool,omitempty"`
	ApprovalID string       `json:"approvalId,omitempty"`
	Kind       run.Kind     `json:"kind,omitempty"` // approval, plan or review
	ExpiresAt  time.Time    `json:"expiresAt,omitzero"`
	Decision   run.Decision `json:"decision,omitempty"`
	HeldUntil  time.Time    `json:"heldUntil,omitzero"` // with an approval: the time until which it can be undone

	Status    run.Status `json:"status,omitempty"`    // how the run ended
	ErrorCode fault.Code `json:"errorCode,omitempty"` // why the run failed

	Link string `json:"link,omitempty"` // address where the owner sees the run and decides; empty if the console's address is unknown
}

// ErrUnderWay means that notifications are being sent or will be sent later. The caller must call the publisher again.
var ErrUnderWay = errors.New("event: notifications are still being sent")

// A Publisher sends notifications of one run in order. After an error, some of them may have been sent, and the caller
// must pass all of them again.
type Publisher interface {
	Publish(ctx context.Context, notices ...Event) error
}

// After returns the notifications for the run's events after number seq, in order. s is the run's state after all
// events. console is the address of the console, without a trailing slash.
func After(seq int64, r run.Run, s *run.State, events []run.Event, console string) (all []Event) {
	for _, e := range events[first(events, seq):] {
		if n, ok := of(r, s, e); ok {
			n.Data.Link = Link(console, n.Data.ThreadID)
			all = append(all, n)
		}
	}
	return all
}

// Publishes reports whether [After] would return any notification.
func Publishes(seq int64, s *run.State, events []run.Event) bool {
	for _, e := range events[first(events, seq):] {
		if _, ok := of(run.Run{}, s, e); ok {
			return true
		}
	}
	return false
}

// first returns the index of the first event after number seq. Events are numbered consecutively.
func first(events []run.Event, seq int64) int64 {
	if len(events) == 0 {
		return 0
	}
	return min(max(0, seq+1-events[0].Seq), int64(len(events)))
}

// of returns the notification for the event, and whether the event has one.
func of(r run.Run, s *run.State, e run.Event) (Event, bool) {
	n := Event{ID: fmt.Sprintf("%s.%d", r.ID, e.Seq), Time: e.At,
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
		return Event{}, false
	}
	if e.Wait != nil {
		n.Data.ApprovalID, n.Data.Kind, n.Data.ExpiresAt = e.Wait.ApprovalID, e.Wait.Kind, e.Wait.ExpiresAt
	}
	return n, true
}

// hasExpired reports whether the call ended because its user did not decide in time.
func hasExpired(a *run.Action, f *run.Finished) bool {
	return a != nil && a.ApprovalID != "" && a.Decision == "" && f.Error != nil && f.Error.Code == fault.CodeExpired
}

// Link returns the address of the conversation in the console, or "" if the console's address is unknown.
func Link(console, threadID string) string {
	if console == "" {
		return ""
	}
	return console + "/#/t/" + threadID
}

// event is a notification in the JSON format of CloudEvents
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

// ContentType is the media type of an encoded notification.
const ContentType = "application/cloudevents+json"

// Encode returns the notification as JSON. The bytes are the same each time.
func (n Event) Encode(source string) ([]byte, error) {
	return strictjson.Marshal(event{SpecVersion: "1.0", ID: n.ID, Source: source, Type: n.Type, Subject: n.Data.RunID,
		Time: n.Time.UTC(), ContentType: "application/json", Data: n.Data})
}

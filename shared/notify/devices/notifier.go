package devices

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/base/strictjson"
	"github.com/countersign-run/countersign/shared/notify/event"
	"github.com/countersign-run/countersign/shared/notify/webpush"
	"github.com/countersign-run/countersign/shared/store"
	"github.com/countersign-run/countersign/shared/store/document"
)

// keptFor is how long a push service keeps the message that an approval was decided, for a device that is off.
const keptFor = 24 * time.Hour

// A Notifier sends notifications to people's devices.
type Notifier struct {
	Store  store.Store
	Sender webpush.Sender
	// Forget removes a device that can no longer be reached.
	Forget func(ctx context.Context, uid, id string) (existed bool, err error)
	Log    *slog.Logger
}

// message is the content sent to a device.
type message struct {
	Asks       bool   `json:"asks"` // an approval waits; otherwise it was decided and its notification must disappear
	ApprovalID string `json:"approvalId"`
	Question   string `json:"question,omitempty"`
	ThreadID   string `json:"threadId,omitempty"`
}

// Notify makes the user's devices show a waiting approval, or hide a decided one. It reads the approval first, so a
// repeated notification is shown only once. It returns nil once one device was reached. It returns an error if no
// device was reached and some may be reached later, or the store's error.
func (t *Notifier) Notify(ctx context.Context, kind event.Type, d event.Data) error {
	asks := kind == event.ApprovalRequested || kind == event.ReviewRequested
	if !asks && kind != event.ApprovalDecided && kind != event.ApprovalExpired || d.UID == "" || d.ApprovalID == "" {
		return nil
	}
	docs, err := t.Store.Get(ctx, document.UserPath(d.UID), document.ApprovalPath(d.ApprovalID))
	if err != nil {
		return err
	}
	var u run.User
	var a run.Approval
	if !docs[0].Exists() || !docs[1].Exists() {
		return nil
	}
	if err := errors.Join(document.Decode(docs[0], &u), document.Decode(docs[1], &a)); err != nil {
		return err
	}
	open := a.Status == run.ApprovalOpen && a.ExpiresAt.After(docs[1].ReadTime)
	if a.UID != d.UID || u.Disabled || u.Deleting || len(u.Devices) == 0 || asks != open {
		return nil
	}
	m := message{ApprovalID: a.ID}
	if asks {
		m = message{Asks: true, ApprovalID: a.ID, Question: event.Question(a), ThreadID: a.ThreadID}
	}
	return t.send(ctx, u, m, a.ExpiresAt)
}

// send sends the message to all devices concurrently.
func (t *Notifier) send(ctx context.Context, u run.User, m message, until time.Time) error {
	plain, err := strictjson.Marshal(m)
	if err != nil {
		return err
	}
	out := webpush.Message{Plain: plain, Topic: ID(m.ApprovalID)[:32], Until: until, Urgent: m.Asks}
	if !m.Asks {
		out.Until = t.Sender.Now().Add(keptFor)
	}
	failed := make([]error, len(u.Devices))
	var all sync.WaitGroup
	for i, d := range u.Devices {
		if !m.Asks && mustShow(d.Endpoint) {
			continue
		}
		all.Go(func() {
			failed[i] = t.sendTo(ctx, u.UID, d, out)
		})
	}
	all.Wait()
	for _, err := range failed {
		if err == nil {
			return nil // the user is notified
		}
	}
	return errors.Join(failed...)
}

// mustShow reports whether the browser withdraws a site's permission after a message that shows nothing, as
// Apple's browsers do.
func mustShow(endpoint string) bool {
	return strings.HasPrefix(endpoint, "https://web.push.apple.com/")
}

func (t *Notifier) sendTo(ctx context.Context, uid string, d run.Device, m webpush.Message) error {
	err := t.Sender.Send(ctx, webpush.Subscription{Endpoint: d.Endpoint, P256dh: d.P256dh, Auth: d.Auth}, m)
	if errors.Is(err, webpush.ErrGone) {
		_, err = t.Forget(ctx, uid, ID(d.Endpoint))
		return err
	}
	if err != nil {
		t.Log.WarnContext(ctx, "a device could not be notified", "counter", "device_failed", "code",
			fault.As(err).Code, "error", err)
	}
	return err
}

package agent

import (
	"slices"
	"time"

	"github.com/countersign-run/countersign/shared/fault"
	"github.com/countersign-run/countersign/shared/policy"
)

// Role of a message in a thread.
type Role string

// The roles.
const (
	RoleUser      Role = "user"
	RoleAssistant Role = "assistant"
)

// Message is one entry of the transcript that people read. It is never sent to the model as it stands while a call is
// open: the model's own contents are another log.
type Message struct {
	Seq        int64     `json:"seq"`
	Role       Role      `json:"role"`
	Text       string    `json:"text"`
	RunID      string    `json:"runId,omitempty"`
	ApprovalID string    `json:"approvalId,omitempty"` // of a request for approval
	Outcome    string    `json:"outcome,omitempty"`    // of the run that ends with the message: what it came to, from the record, in one line
	Words      int       `json:"words,omitempty"`      // where Outcome is set: as many bytes of Text, from its beginning, are the model's own
	At         time.Time `json:"at"`
}

// Thread is a conversation of one user.
type Thread struct {
	ID        string       `json:"id"`
	UID       string       `json:"uid"`
	Title     string       `json:"title"`
	CreatedAt time.Time    `json:"createdAt"`
	UpdatedAt time.Time    `json:"updatedAt"`
	Deleting  bool         `json:"deleting,omitempty"` // its deletion has begun: it is gone for its user, and nothing begins in it
	Log       Log[Message] `json:"log"`
}

// The bounds of a thread.
const (
	MaxMessages     = 10_000   // in one thread
	MaxMessageText  = 64 << 10 // bytes of one message
	historyMessages = 20       // sent to the model with a new prompt
	historyBytes    = 48 << 10
	tailMessages    = 60
)

// Add appends messages and gives the chunks to be written with it.
func (t *Thread) Add(msgs ...Message) ([]Chunk[Message], error) {
	for i := range msgs {
		msgs[i].Seq = t.Log.Count + int64(i) + 1
		msgs[i].Text = Cut(msgs[i].Text, MaxMessageText)
		t.UpdatedAt = msgs[i].At
	}
	return t.Log.Append(historyMessages, tailMessages, msgs...)
}

// Said is what of the message its speaker has said: what we have added to it, and messages of our own, are not the model's words.
func (m Message) Said() string {
	switch {
	case m.ApprovalID != "":
		return ""
	case m.Outcome != "":
		return m.Text[:min(m.Words, len(m.Text))]
	}
	return m.Text
}

// History is what the model is told of the conversation so far: the newest messages, bounded in number and bytes.
func (t *Thread) History() []Message {
	from, size := len(t.Log.Tail), 0
	for from > 0 && len(t.Log.Tail)-from < historyMessages {
		size += len(t.Log.Tail[from-1].Text) + len(t.Log.Tail[from-1].Outcome)
		if size > historyBytes {
			break
		}
		from--
	}
	return append([]Message(nil), t.Log.Tail[from:]...)
}

// Cut shortens s to at most n bytes without splitting a character, and marks that it did.
func Cut(s string, n int) string {
	const mark = " […]"
	if len(s) <= n {
		return s
	}
	n -= len(mark)
	for n > 0 && s[n]&0xC0 == 0x80 {
		n--
	}
	return s[:n] + mark
}

// User is what is kept of a user: what they always allow, and how much they are being asked. Every commit that asks or
// answers moves it, so the caps hold however many functions race.
type User struct {
	UID      string         `json:"uid"`
	Region   Region         `json:"region,omitzero"`    // as their newest client told of it, for those that do not
	Disabled bool           `json:"disabled,omitempty"` // shut out: nothing is done for them any more, whatever was approved
	Deleting bool           `json:"deleting,omitempty"` // all that is kept of them is being deleted
	Nonce    []byte         `json:"nonce,omitempty"`    // of the hashes in their own chain (audit.InputHash)
	Allow    []policy.Entry `json:"allow,omitempty"`
	Open     int            `json:"open"` // approvals that wait, reviews included
	Day      string         `json:"day,omitempty"`
	Asked    int            `json:"asked"` // approvals asked for on Day (UTC)
	Spent    Spent          `json:"spent,omitzero"`
}

// MayAct is the answer to a user who has been shut out.
func (u *User) MayAct() error {
	if u.Disabled {
		return fault.New(fault.Auth, fault.CodeUnauthenticated, "This account has been disabled.")
	}
	return nil
}

// MaxAllow is how many "always allow" entries a user may have.
const MaxAllow = 500

// AskedOn is how many approvals were asked for on the day of now.
func (u *User) AskedOn(now time.Time) int {
	if u.Day != now.UTC().Format(time.DateOnly) {
		return 0
	}
	return u.Asked
}

// Ask counts one more approval.
func (u *User) Ask(now time.Time) {
	u.Asked, u.Day = u.AskedOn(now)+1, now.UTC().Format(time.DateOnly)
	u.Open++
}

// AlwaysAllow adds entries, each once, and drops those that have ended. What rested on one today goes on counting.
func (u *User) AlwaysAllow(entries []policy.Entry, now time.Time) {
	kept := make([]policy.Entry, 0, len(u.Allow)+len(entries))
	for _, e := range u.Allow {
		at := slices.IndexFunc(entries, func(n policy.Entry) bool { return n.ID == e.ID })
		switch {
		case at >= 0:
			entries[at].Day, entries[at].Used = e.Day, e.Used
		case now.Before(e.ExpiresAt):
			kept = append(kept, e)
		}
	}
	u.Allow = append(kept, entries...)
}

// UseAllowed counts an effect that rests on the entries of the ids.
func (u *User) UseAllowed(ids []string, now time.Time) {
	for i := range u.Allow {
		if slices.Contains(ids, u.Allow[i].ID) {
			u.Allow[i].Use(now)
		}
	}
}

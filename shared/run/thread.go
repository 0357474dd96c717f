package run

import (
	"slices"
	"time"

	"github.com/countersign-run/countersign/shared/clip"
	"github.com/countersign-run/countersign/shared/document"
	"github.com/countersign-run/countersign/shared/fault"
	"github.com/countersign-run/countersign/shared/policy"
)

// Role is the role of a message in a thread.
type Role string

// The roles of messages.
const (
	RoleUser      Role = "user"
	RoleAssistant Role = "assistant"
)

// A Message is one entry of the transcript that people read. The model's own contents are a separate log, and no
// message is put between a call and its response.
type Message struct {
	Seq        int64     `json:"seq"`
	Role       Role      `json:"role"`
	Text       string    `json:"text"`
	RunID      string    `json:"runId,omitempty"`
	ApprovalID string    `json:"approvalId,omitempty"` // set on a request for approval
	Outcome    string    `json:"outcome,omitempty"`    // one line on what the run did, in its last message
	Words      int       `json:"words,omitempty"`      // bytes of the model's own words in Text, with Outcome
	Read       *Reading  `json:"read,omitempty"`       // of strangers, by a run before its last message
	At         time.Time `json:"at"`
}

// A Reading says that what strangers wrote was read, and may stand in words that followed.
type Reading struct {
	Origin  string `json:"origin"` // of the first that was read
	Private bool   `json:"private,omitempty"`
	// Addresses are those in the model's last words that stood in what was read; the others it has made up.
	Addresses []string `json:"addresses,omitempty"`
}

// A Thread is a conversation of one user.
type Thread struct {
	ID        string    `json:"id"`
	UID       string    `json:"uid"`
	Title     string    `json:"title"`
	Titled    bool      `json:"titled,omitempty"` // not by a prompt: by its user or by what was done, and stays so
	CreatedAt time.Time `json:"createdAt"`
	UpdatedAt time.Time `json:"updatedAt"`
	Deleting  bool      `json:"deleting,omitempty"` // being deleted: hidden, and no run begins in it
	// runs with a call that waits for the client, or that did
	Waiting []string              `json:"waiting,omitempty"`
	OpenRun string                `json:"openRun,omitempty"` // of an exclusive agent: no other begins until it ends
	Log     document.Log[Message] `json:"log"`
	Terms   []string              `json:"terms,omitempty"` // what it can be found by (Note), the newest last

	// Contents are the Gemini contents of the runs whose agents are told them again (agents.HistoryVerbatim).
	Contents document.Log[Content] `json:"contents,omitzero"`
	Told     Told                  `json:"told,omitzero"`  // what the next such run is told of them
	Mark     string                `json:"mark,omitempty"` // random; marks the server's records among them
}

// An OpenError names the run that has to end before another one begins in its thread.
type OpenError struct {
	RunID  string
	Status Status
}

func (e *OpenError) Error() string { return "run " + e.RunID + " is " + string(e.Status) }

// The bounds of a thread.
const (
	MaxMessages     = 10_000   // in one thread
	MaxMessageText  = 64 << 10 // bytes of one message
	historyMessages = 20       // sent to the model with a new prompt
	historyBytes    = 48 << 10
	tailMessages    = 60
)

// maxWaiting is the number of runs that a thread names in Waiting. The calls of one that is left out end with their
// time.
const maxWaiting = 16

// MaxTitle is the length of a thread's title, in bytes.
const MaxTitle = 80

// Entitle calls the thread by what a run did, unless it has a title of its own, or there is no such title.
func (t *Thread) Entitle(title string) {
	if t.Titled || title == "" {
		return
	}
	t.Title, t.Titled = clip.Text(title, MaxTitle), true
}

// AddWaiting records that a call of the run waits for the client, and reports whether the thread has changed.
func (t *Thread) AddWaiting(runID string) bool {
	if slices.Contains(t.Waiting, runID) {
		return false
	}
	t.Waiting = append(slices.Clone(t.Waiting), runID) // not into the array of a copy whose commit failed
	t.Waiting = t.Waiting[max(0, len(t.Waiting)-maxWaiting):]
	return true
}

// Add appends messages and returns the chunks that must be written with the thread.
func (t *Thread) Add(msgs ...Message) ([]document.Chunk[Message], error) {
	for i := range msgs {
		msgs[i].Seq = t.Log.Count + int64(i) + 1
		msgs[i].Text = clip.Text(msgs[i].Text, MaxMessageText)
		t.UpdatedAt = msgs[i].At
		if msgs[i].Role == RoleUser {
			t.Note(msgs[i].Text)
		}
	}
	return t.Log.Append(historyMessages, tailMessages, msgs...)
}

// LastRun returns the id of the run that was last begun in the thread, or "" where there is none.
func (t *Thread) LastRun() string {
	if n := len(t.Log.Tail); n > 0 {
		return t.Log.Tail[n-1].RunID
	}
	return ""
}

// Asked returns the newest requests for approval of the thread's other runs, at most n and the newest first. Those of a
// run that has said its last words are left out.
func (t *Thread) Asked(runID string, n int) (approvalIDs []string) {
	over := map[string]bool{runID: true}
	for _, m := range slices.Backward(t.Log.Tail) {
		switch {
		case m.Role != RoleAssistant || over[m.RunID] || len(approvalIDs) == n:
		case m.ApprovalID == "":
			over[m.RunID] = true
		default:
			approvalIDs = append(approvalIDs, m.ApprovalID)
		}
	}
	return approvalIDs
}

// OwnWords returns the words of the message's speaker, without what the server added. A message of the server itself
// has none.
func (m Message) OwnWords() string {
	switch {
	case m.ApprovalID != "":
		return ""
	case m.Outcome != "":
		return m.Text[:min(m.Words, len(m.Text))]
	}
	return m.Text
}

// History returns the messages that the model gets of the conversation so far: the newest, bounded in number and bytes.
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

// A User is the stored document of a user: what they always allow, and how many approvals they have been asked for.
// Every commit that requests or resolves an approval changes it, so the caps hold however many functions race.
type User struct {
	UID      string         `json:"uid"`
	Region   Region         `json:"region,omitzero"`    // last one sent; for requests that send none
	Disabled bool           `json:"disabled,omitempty"` // nothing more is done, whatever was approved
	Deleting bool           `json:"deleting,omitempty"` // all of the user's data is being deleted
	Nonce    []byte         `json:"nonce,omitempty"`    // of the hashes in their own chain (audit.InputHash)
	Allow    []policy.Entry `json:"allow,omitempty"`
	Usage    UserUsage      `json:"spent,omitzero"`
	Sessions []string       `json:"sessions,omitempty"` // ids of the newest runs that plan, the newest first
	Tokens   []AgentToken   `json:"tokens,omitempty"`   // of other programs' agents
	Held     []Hold         `json:"held,omitempty"`     // approved a moment ago, the newest last
	Devices  []Device       `json:"devices,omitempty"`  // that are told of what waits, the newest last
	Recent   []Allowed      `json:"recent,omitempty"`   // effects of the last hour, the newest last

	Reminders Reminders `json:"reminders,omitzero"` // by mail

	ApprovalCount                          // the assistant's
	Others        map[string]ApprovalCount `json:"agents,omitempty"` // of the other agents, by their names
}

// An AgentToken is what is kept of a token that the user has given to another program's agent (package agenttoken).
type AgentToken struct {
	ID         string    `json:"id"`
	Name       string    `json:"name"`           // as the user has named the agent; no two are alike
	Hash       []byte    `json:"hash,omitempty"` // SHA-256 of the token
	CreatedAt  time.Time `json:"createdAt"`
	LastUsedAt time.Time `json:"lastUsedAt,omitzero"` // to the hour
}

// A Device is a browser in which the user is told of what waits, also where no page is open (package devices).
type Device struct {
	Endpoint string    `json:"endpoint"`         // at the push service of the browser's maker
	P256dh   []byte    `json:"p256dh,omitempty"` // what is sent is encrypted with these
	Auth     []byte    `json:"auth,omitempty"`
	AddedAt  time.Time `json:"addedAt"`
}

// A Hold says until when an approval can be taken back.
type Hold struct {
	ApprovalID string    `json:"approvalId"`
	Until      time.Time `json:"until"`
}

// maxHeld is the number of holds that a user's document keeps: it tells of them, and nothing depends on it.
const maxHeld = 50

// Hold keeps the hold of an approval, and drops those that have ended.
func (u *User) Hold(h Hold, now time.Time) {
	u.Release("", now)
	u.Held = append(u.Held, h)
	u.Held = u.Held[max(0, len(u.Held)-maxHeld):]
}

// Release drops the hold of an approval that is not carried out, and those that have ended.
func (u *User) Release(approvalID string, now time.Time) {
	u.Held = slices.DeleteFunc(slices.Clone(u.Held),
		func(h Hold) bool { return h.ApprovalID == approvalID || !now.Before(h.Until) })
}

// CheckEnabled returns nil, or the error for a disabled user.
func (u *User) CheckEnabled() error {
	if u.Disabled {
		return fault.New(fault.Auth, fault.CodeUnauthenticated, "This account has been disabled.")
	}
	return nil
}

// MaxAllowEntries is the number of "always allow" entries that a user may have.
const MaxAllowEntries = 500

// AlwaysAllow adds entries, each once, and drops expired ones. An entry that is added again keeps today's count of its
// uses, and what it replaces counts until its hold is over.
func (u *User) AlwaysAllow(entries []policy.Entry, now time.Time) {
	kept := make([]policy.Entry, 0, len(u.Allow)+len(entries))
	for _, e := range u.Allow {
		at := slices.IndexFunc(entries, func(n policy.Entry) bool { return n.ID == e.ID })
		switch {
		case at >= 0:
			entries[at].Day, entries[at].Used = e.Day, e.Used
			if now.Before(entries[at].From) {
				entries[at].Replaced = e.Counting(now)
			}
		case now.Before(e.ExpiresAt):
			kept = append(kept, e)
		}
	}
	u.Allow = append(kept, entries...)
}

// TakeBack removes the entries of an approval whose hold is not over, and has those count that they replaced.
func (u *User) TakeBack(approvalID string, now time.Time) {
	kept := make([]policy.Entry, 0, len(u.Allow))
	for _, e := range u.Allow {
		if e.Approval != approvalID || !now.Before(e.From) {
			kept = append(kept, e)
		} else if was := e.Counting(now); was != nil {
			was.Day, was.Used = e.Day, e.Used
			kept = append(kept, *was)
		}
	}
	u.Allow = kept
}

// UseAllowed counts an effect that was allowed by the entries with the ids.
func (u *User) UseAllowed(ids []string, now time.Time) {
	for i := range u.Allow {
		if slices.Contains(ids, u.Allow[i].ID) {
			u.Allow[i].Use(now)
		}
	}
}

// A TerminalRun names the run that a terminal is kept for until it has ended. It is a document of its own, since that
// of the terminal changes while a run is open. Nothing is written when the run ends: whether it has is asked of it.
type TerminalRun struct {
	UID   string `json:"uid"`
	RunID string `json:"runId,omitempty"` // empty: none was begun yet
}

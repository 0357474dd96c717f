package run

import (
	"slices"
	"time"

	"github.com/countersign-run/countersign/shared/agent/policy"
	"github.com/countersign-run/countersign/shared/agent/preference"
	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/base/clip"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/store/attachment"
	"github.com/countersign-run/countersign/shared/store/document"
)

// Role is the role of a message in a thread.
type Role string

// The roles of messages.
const (
	RoleUser      Role = "user"
	RoleAssistant Role = "assistant"
)

// A Message is one entry of the transcript that people read. The model's own contents are a separate log, so no message
// comes between a call and its response.
type Message struct {
	Seq        int64     `json:"seq"`
	Role       Role      `json:"role"`
	Text       string    `json:"text"`
	RunID      string    `json:"runId,omitempty"`
	ApprovalID string    `json:"approvalId,omitempty"` // set on a request for approval
	Outcome    string    `json:"outcome,omitempty"`    // what the run did, in one line; in its last message
	Words      int       `json:"words,omitempty"`      // with Outcome: length of the model's own words in Text
	Read       *Reading  `json:"read,omitempty"`       // text from strangers that the run read before its last message
	At         time.Time `json:"at"`

	Moments []tool.Moment `json:"moments,omitempty"` // moments named in Text and Outcome

	Attachments []attachment.Facts `json:"attachments,omitempty"` // the files of a prompt, or of the answers
}

// A Reading records that a run read text from strangers, which may occur in later words.
type Reading struct {
	Origin  string `json:"origin"` // source of the first text
	Private bool   `json:"private,omitempty"`
	// Addresses are the addresses in the model's last words that occur in the text. The model made up the others.
	Addresses []string `json:"addresses,omitempty"`
}

// A Thread is a conversation of one user.
type Thread struct {
	ID    string `json:"id"`
	UID   string `json:"uid"`
	Title string `json:"title"`
	// Titled means that the title came from the user or from a run's effect, not from a prompt. Such a title does not
	// change.
	Titled    bool      `json:"titled,omitempty"`
	CreatedAt time.Time `json:"createdAt"`
	UpdatedAt time.Time `json:"updatedAt"`
	Deleting  bool      `json:"deleting,omitempty"` // being deleted: hidden, and no new run can begin
	// Waiting lists the runs that have or had a call waiting for the client.
	Waiting []string `json:"waiting,omitempty"`
	// OpenRun is the open run of an exclusive agent. No other run of the agent begins in the thread until it ends.
	OpenRun string                `json:"openRun,omitempty"`
	Log     document.Log[Message] `json:"log"`
	Terms   []string              `json:"terms,omitempty"` // search terms (Note), the newest last

	// Contents are the Gemini contents of the runs whose agents replay them (registry.HistoryVerbatim).
	Contents document.Log[Content] `json:"contents,omitzero"`
	Window   ContextWindow         `json:"told,omitzero"`   // the part of Contents that the next of these runs sees
	Mark     string                `json:"mark,omitempty"`  // random; marks the server's records in Contents
	Files    bool                  `json:"files,omitempty"` // a prompt or an answer of the thread had a file
}

// An OpenError names the run that must end before another one begins in its thread.
type OpenError struct {
	RunID  string
	Status Status
}

func (e *OpenError) Error() string { return "run " + e.RunID + " is " + string(e.Status) }

// Limits of a thread.
const (
	MaxMessages     = 10_000   // in one thread
	MaxMessageText  = 64 << 10 // bytes of one message
	historyMessages = 20       // sent to the model with a new prompt
	historyBytes    = 48 << 10
	fileBytes       = 300 // of the line that names a file to the model
	tailMessages    = 60
)

// maxWaiting is the maximum number of runs in Waiting. The oldest are dropped, and their calls expire.
const maxWaiting = 16

// MaxTitle is the maximum length of a thread's title, in bytes.
const MaxTitle = 80

// Entitle names the thread after what a run did. It does nothing if title is empty or the thread already has a lasting
// title.
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
	t.Waiting = append(slices.Clone(t.Waiting), runID) // a copy, because the commit of this thread may fail
	t.Waiting = t.Waiting[max(0, len(t.Waiting)-maxWaiting):]
	return true
}

// Add appends messages and returns the chunks that must be written with the thread. It numbers the messages and cuts
// their texts to MaxMessageText.
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

// LastRun returns the ID of the run that began last in the thread, or "" if there is none.
func (t *Thread) LastRun() string {
	if n := len(t.Log.Tail); n > 0 {
		return t.Log.Tail[n-1].RunID
	}
	return ""
}

// File returns the newest file of the thread with the name, and where it is stored. The user attached the file, or the
// model made it. ok is false if the newest messages have none.
func (t *Thread) File(name string) (f attachment.Stored, ref attachment.Ref, ok bool) {
	for _, m := range slices.Backward(t.Log.Tail) {
		for _, f := range slices.Backward(attachment.StoredOf(m.Attachments)) {
			if f.Name == name && m.RunID != "" {
				return f, f.Ref(m.RunID), true
			}
		}
	}
	return f, ref, false
}

// Asked returns the IDs of the newest approvals that the thread's other runs requested, newest first, at most n. Runs
// that have ended are left out.
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

// TrustedText returns the speaker's words in the message, without the text that the server added. A message of the
// server has none.
func (m Message) TrustedText() string {
	switch {
	case m.ApprovalID != "":
		return ""
	case m.Outcome != "":
		return m.Text[:min(m.Words, len(m.Text))]
	}
	return m.Text
}

// History returns the part of the conversation that the model sees: the newest messages, at most 20 and 48 KiB.
func (t *Thread) History() []Message {
	from, size := len(t.Log.Tail), 0
	for from > 0 && len(t.Log.Tail)-from < historyMessages {
		m := t.Log.Tail[from-1]
		size += len(m.Text) + len(m.Outcome) + fileBytes*len(m.Attachments)
		if size > historyBytes {
			break
		}
		from--
	}
	return append([]Message(nil), t.Log.Tail[from:]...)
}

// A User is the stored document of a user: their always-allow list, their usage, and the number of approvals requested
// from them. Every commit that requests or resolves an approval changes it, so the caps hold however many functions run
// at once.
type User struct {
	UID string `json:"uid"`
	// Locale is from the last request that sent one. It applies to requests that send none.
	Locale      Locale         `json:"region,omitzero"`
	Disabled    bool           `json:"disabled,omitempty"` // no call runs, whatever was approved
	Deleting    bool           `json:"deleting,omitempty"` // all of the user's data is being deleted
	Nonce       []byte         `json:"nonce,omitempty"`    // for the hashes in the user's audit chain (audit.InputHash)
	Allow       []policy.Entry `json:"allow,omitempty"`
	Usage       UserUsage      `json:"spent,omitzero"`
	Sessions    []string       `json:"sessions,omitempty"` // IDs of the newest runs with a plan, the newest first
	Tokens      []AgentToken   `json:"tokens,omitempty"`   // tokens of other programs' agents
	UndoWindows []UndoWindow   `json:"held,omitempty"`     // approvals in their undo window, the newest last
	Devices     []Device       `json:"devices,omitempty"`  // browsers that get notifications, the newest last
	Recent      []Allowed      `json:"recent,omitempty"`   // effects of the last hour, the newest last

	Reminders   Reminders      `json:"reminders,omitzero"` // e-mails about waiting approvals
	Preferences preference.Set `json:"preferences,omitzero"`

	ApprovalCount                          // the assistant's count
	Others        map[string]ApprovalCount `json:"agents,omitempty"` // the counts of the other agents, by name
}

// Located returns the locale in the language that the user prefers.
func (u *User) Located(l Locale) Locale { return Locale{Language: u.Preferences.Language}.Or(l) }

// An AgentToken is the stored part of a token that the user created for another program's agent (package agenttoken).
type AgentToken struct {
	ID         string    `json:"id"`
	Name       string    `json:"name"`           // the user's name for the agent; unique for the user
	Hash       []byte    `json:"hash,omitempty"` // SHA-256 of the token
	CreatedAt  time.Time `json:"createdAt"`
	LastUsedAt time.Time `json:"lastUsedAt,omitzero"` // to the hour
}

// A Device is a browser that shows the user notifications even while no page is open (package devices).
type Device struct {
	Endpoint string    `json:"endpoint"`         // URL at the push service of the browser's vendor
	P256dh   []byte    `json:"p256dh,omitempty"` // P256dh and Auth are the keys that encrypt notifications
	Auth     []byte    `json:"auth,omitempty"`
	AddedAt  time.Time `json:"addedAt"`
}

// An UndoWindow is the undo window of an approval.
type UndoWindow struct {
	ApprovalID string    `json:"approvalId"`
	Until      time.Time `json:"until"`
}

// maxHeld is the maximum number of holds in a user's document. The holds are only informative.
const maxHeld = 50

// AddUndoWindow adds the undo window of an approval and drops the windows that have ended.
func (u *User) AddUndoWindow(h UndoWindow, now time.Time) {
	u.EndUndoWindow("", now)
	u.UndoWindows = append(u.UndoWindows, h)
	u.UndoWindows = u.UndoWindows[max(0, len(u.UndoWindows)-maxHeld):]
}

// EndUndoWindow drops the undo window of an approval that will not run, and the windows that have ended.
func (u *User) EndUndoWindow(approvalID string, now time.Time) {
	u.UndoWindows = slices.DeleteFunc(slices.Clone(u.UndoWindows),
		func(h UndoWindow) bool { return h.ApprovalID == approvalID || !now.Before(h.Until) })
}

// CheckEnabled returns nil, or an AuthError if the user is disabled.
func (u *User) CheckEnabled() error {
	if u.Disabled {
		return fault.New(fault.Auth, fault.CodeUnauthenticated, "This account has been disabled.")
	}
	return nil
}

// MaxAllowEntries is the maximum number of entries in a user's always-allow list.
const MaxAllowEntries = 500

// AlwaysAllow adds entries, each once, and drops expired ones. An entry that is added again keeps today's use count.
// The entry that it replaces applies until the undo window closes.
func (u *User) AlwaysAllow(entries []policy.Entry, now time.Time) {
	kept := make([]policy.Entry, 0, len(u.Allow)+len(entries))
	for _, e := range u.Allow {
		at := slices.IndexFunc(entries, func(n policy.Entry) bool { return n.ID == e.ID })
		switch {
		case at >= 0:
			entries[at].Day, entries[at].Used, entries[at].Replaced = e.Day, e.Used, e.Counting(now)
		case now.Before(e.ExpiresAt):
			kept = append(kept, e)
		}
	}
	u.Allow = append(kept, entries...)
}

// TakeBack removes the entries of an approval whose undo window is open, and restores the entries that they replaced.
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

// Withdraw removes the entry with the ID and returns it. With an approvalID it removes the entry only if that approval
// created it, and restores the entry that it replaced.
func (u *User) Withdraw(id, approvalID string, now time.Time) (policy.Entry, bool) {
	at := slices.IndexFunc(u.Allow, func(e policy.Entry) bool {
		return e.ID == id && (approvalID == "" || e.Approval == approvalID)
	})
	if at < 0 {
		return policy.Entry{}, false
	}
	e := u.Allow[at]
	u.Allow = slices.Delete(slices.Clone(u.Allow), at, at+1)
	if was := e.Replaced; approvalID != "" && was != nil && now.Before(was.ExpiresAt) {
		kept := *was
		kept.Day, kept.Used = e.Day, e.Used
		u.Allow = slices.Insert(u.Allow, at, kept)
	}
	return e, true
}

// UseAllowed counts an effect that the entries with these IDs allowed.
func (u *User) UseAllowed(ids []string, now time.Time) {
	for i := range u.Allow {
		if slices.Contains(ids, u.Allow[i].ID) {
			u.Allow[i].Use(now)
		}
	}
}

// A TerminalRun names the run that a terminal is reserved for until the run ends. It is a separate document, because
// the terminal's own document changes while a run is open. The end of the run does not change it; readers check the run
// itself.
type TerminalRun struct {
	UID   string `json:"uid"`
	RunID string `json:"runId,omitempty"` // empty: no run has begun yet
}

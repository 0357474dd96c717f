package gmail

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"unicode"

	"github.com/google/jsonschema-go/jsonschema"
	gmailapi "google.golang.org/api/gmail/v1"

	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/base/visible"
	"github.com/countersign-run/countersign/shared/tools/internal/provider"
)

// The limits of a change of labels.
const (
	MaxModified = 25  // e-mails
	maxLabels   = 10  // names, each of those to add and those to remove
	maxLabel    = 225 // octets of a name
)

// ModifyArgs are the arguments of gmail_modify.
type ModifyArgs struct {
	MessageIDs []string `json:"messageIds,omitempty" jsonschema:"Gmail's ids of the mails, as gmail_search returns them."`
	ThreadID   string   `json:"threadId,omitempty" jsonschema:"Gmail's id of a conversation, instead of messageIds: all of its mails."`
	Add        []string `json:"addLabels,omitempty" jsonschema:"Names of labels that the mails get. STARRED stars a mail, UNREAD marks it as unread, INBOX moves it back to the inbox."`
	Remove     []string `json:"removeLabels,omitempty" jsonschema:"Names of labels that the mails lose. Without INBOX a mail is archived, and without UNREAD it is marked as read."`
	Filing     *Filing  `json:"filing,omitempty"`
}

// Filing holds the e-mails and labels that a call changes, as the server has read them. No model writes it. The call
// changes these e-mails and no others: an e-mail that has since arrived in the conversation stays as it is.
type Filing struct {
	Account Account `json:"account"`
	Add     []Label `json:"add,omitempty"`
	Remove  []Label `json:"remove,omitempty"`
	Mails   []Filed `json:"mails"`
}

// Account is the account that has the labels and e-mails.
type Account struct {
	ID   string `json:"id"`
	Name string `json:"name"`
}

// Label is a label of the account.
type Label struct {
	ID   string `json:"id"`
	Name string `json:"name"`
}

// Filed is an e-mail whose labels change.
type Filed struct {
	ID      string   `json:"id"`
	From    string   `json:"from"`
	Subject string   `json:"subject"`
	Date    string   `json:"date,omitempty"`
	Labels  []string `json:"labels,omitempty"` // the IDs of its labels, as far as they are those that change
}

// Modified is the result of gmail_modify.
type Modified struct {
	Mails int `json:"mails"` // how many have the labels now
}

// NewModify returns the tool that changes labels.
func NewModify(accounts provider.Accounts, o Options) *tool.Tool {
	m := &modifier{newClient(accounts, o)}
	scopes := []string{gmailapi.GmailModifyScope}
	return tool.Define(tool.Def[ModifyArgs, Modified]{
		Name: Modify,
		Description: "Adds and removes labels of mails in the user's own Gmail: archives them, marks them as read or " +
			"unread, stars them. It deletes nothing. The user sees the mails and approves the change first.",
		SideEffect: true,
		Scopes:     scopes,
		Place:      m.Place(scopes),
		Reads:      m.Reads,
		Quota:      units(modifyUnits),
		Refine:     refineModify,
		Normalize:  normalizeModify,
		Complete:   m.complete,
		Revise:     reviseModify,
		Changes: func(a ModifyArgs) (ModifyArgs, []tool.Change) {
			a.Filing = nil // no text of the call
			return a, nil
		},
		Pinned: func(a ModifyArgs) any {
			a.Filing = nil
			return a
		},
		Rule: func(_ context.Context, _ tool.Call, a ModifyArgs) (tool.CallPolicy, error) {
			return ruleModify(a), nil
		},
		Preview: previewModify,
		Summary: func(a ModifyArgs) string { return "Changed the labels of " + a.mails() + "." },
		Heading: func(a ModifyArgs) string { return "Labels of " + a.mails() },
		Link: func(in tool.Place, _ Modified) string {
			return "https://mail.google.com/mail/?" + url.Values{"authuser": {in.Name}}.Encode() + "#all"
		},
		Execute:   m.modify,
		Reconcile: m.reconcile,
	})
}

func refineModify(s *jsonschema.Schema) {
	p := s.Properties
	p["messageIds"].MaxItems = jsonschema.Ptr(MaxModified)
	p["messageIds"].Items.MaxLength = jsonschema.Ptr(32)
	p["threadId"].MaxLength = jsonschema.Ptr(32)
	for _, name := range []string{"addLabels", "removeLabels"} {
		p[name].MaxItems = jsonschema.Ptr(maxLabels)
		p[name].Items.MaxLength = jsonschema.Ptr(maxLabel)
	}
	p["filing"] = &jsonschema.Schema{Type: "object", Description: "Leave it out. The server fills it in."}
}

func normalizeModify(a ModifyArgs) (ModifyArgs, error) {
	if (len(a.MessageIDs) == 0) == (a.ThreadID == "") {
		return a, fault.Invalid("messageIds", "set either messageIds or threadId")
	}
	if a.ThreadID != "" && !threadID.MatchString(a.ThreadID) {
		return a, fault.Invalid("threadId", "not a Gmail ID")
	}
	for _, id := range a.MessageIDs {
		if !threadID.MatchString(id) {
			return a, fault.Invalid("messageIds", "not a Gmail ID")
		}
	}
	a.MessageIDs = set(a.MessageIDs)
	var err error
	if a.Add, err = labelNames("addLabels", a.Add); err != nil {
		return a, err
	}
	if a.Remove, err = labelNames("removeLabels", a.Remove); err != nil {
		return a, err
	}
	if len(a.Add)+len(a.Remove) == 0 {
		return a, fault.Invalid("addLabels", "at least one label to add or remove is required")
	}
	for _, name := range a.Add {
		if slices.ContainsFunc(a.Remove, func(other string) bool { return strings.EqualFold(other, name) }) {
			return a, fault.Invalid("removeLabels", "a label cannot be both added and removed")
		}
	}
	return a, nil
}

// labelNames checks names of labels, and returns each once, sorted.
func labelNames(field string, names []string) ([]string, error) {
	out := slices.Clone(names)
	for i, name := range out {
		out[i] = strings.TrimSpace(name)
		switch {
		case visible.Blank(name) || strings.ContainsFunc(out[i], unicode.IsControl) || len(out[i]) > maxLabel:
			return nil, fault.Invalid(field,
				"a label name must have 1 to %d bytes, and no control characters", maxLabel)
		case slices.Contains(fixedLabels, strings.ToUpper(out[i])):
			return nil, fault.Invalid(field,
				"Gmail's own labels TRASH, SPAM, SENT, DRAFT and CHAT cannot be changed here")
		}
	}
	return set(out), nil
}

// fixedLabels are labels of Gmail that delete e-mails, hide them from a search, or cannot be changed at all.
var fixedLabels = []string{"TRASH", "SPAM", "SENT", "DRAFT", "CHAT"}

// set returns the values sorted, without duplicates.
func set(values []string) []string {
	values = slices.Clone(values)
	slices.Sort(values)
	return slices.Compact(values)
}

// reviseModify makes the card appear again after an edit, because new label names were not read yet.
func reviseModify(before, edited ModifyArgs) ModifyArgs {
	edited.Filing = nil
	if slices.Equal(edited.MessageIDs, before.MessageIDs) && edited.ThreadID == before.ThreadID &&
		slices.Equal(edited.Add, before.Add) && slices.Equal(edited.Remove, before.Remove) {
		edited.Filing = before.Filing
	}
	return edited
}

// ruleModify lets the user always allow exactly this change of labels in this account, for any e-mails: labels delete
// nothing and show nothing to others.
func ruleModify(a ModifyArgs) tool.CallPolicy {
	p := tool.CallPolicy{Class: tool.ClassChange, Mode: tool.RuleAsk, ID: "labels_ask",
		Reason: "It changes your mailbox, so it needs your approval."}
	if f := a.Filing; f != nil && f.Account.ID != "" {
		key := []string{"labels", f.Account.ID}
		for _, l := range f.Add {
			key = append(key, "+", l.ID, l.Name)
		}
		for _, l := range f.Remove {
			key = append(key, "-", l.ID, l.Name)
		}
		p.Always = &tool.Always{Key: strings.Join(key, "\x00"),
			Shown: strings.Join(changesOf(a), "; ") + ", for any e-mails of " + f.Account.Name}
	}
	return p
}

// changesOf describes what happens to each e-mail.
func changesOf(a ModifyArgs) (all []string) {
	add, remove := a.Add, a.Remove
	if f := a.Filing; f != nil {
		add, remove = namesOf(f.Add), namesOf(f.Remove)
	}
	for _, name := range add {
		all = append(all, described(name, added, "Add the label “%s”"))
	}
	for _, name := range remove {
		all = append(all, described(name, removed, "Remove the label “%s”"))
	}
	return all
}

// Gmail's names for changes of its own labels.
var (
	added = map[string]string{"INBOX": "Move to the inbox", "UNREAD": "Mark as unread", "STARRED": "Add a star",
		"IMPORTANT": "Mark as important"}
	removed = map[string]string{"INBOX": "Archive (remove from the inbox)", "UNREAD": "Mark as read",
		"STARRED": "Remove the star", "IMPORTANT": "Mark as not important"}
)

func described(name string, words map[string]string, otherwise string) string {
	if w := words[strings.ToUpper(name)]; w != "" {
		return w
	}
	name, _ = visible.Line(name)
	return fmt.Sprintf(otherwise, name)
}

func namesOf(labels []Label) (names []string) {
	for _, l := range labels {
		names = append(names, l.Name)
	}
	return names
}

// e-mails describes the number of e-mails that a call changes.
func (a ModifyArgs) mails() string {
	n := len(a.MessageIDs)
	if a.Filing != nil {
		n = len(a.Filing.Mails)
	}
	switch {
	case n == 0:
		return "a conversation"
	case n == 1:
		return "one e-mail"
	}
	return fmt.Sprintf("%d e-mails", n)
}

// previewModify shows each e-mail, and what happens to it.
func previewModify(a ModifyArgs) tool.Preview {
	p := tool.Preview{Title: "Change the labels of " + a.mails()}
	p.AddText("Change", strings.Join(changesOf(a), "\n"))
	if a.ThreadID != "" {
		p.AddLine("Conversation", a.ThreadID)
	}
	if a.Filing == nil {
		p.AddText("E-mails", strings.Join(a.MessageIDs, "\n"))
		return p
	}
	var mails []string
	var dates []tool.Moment
	for _, m := range a.Filing.Mails {
		line := fmt.Sprintf("“%s”, from %s, %s", m.Subject, m.From, m.Date)
		if a.Filing.done(m.Labels) {
			line += " (is so already)"
		}
		mails, dates = append(mails, line), append(dates, tool.StampMoment(m.Date)...)
	}
	p.AddText("E-mails", strings.Join(mails, "\n"))
	p.NameMoments(dates...)
	return p
}

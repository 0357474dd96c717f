package testkit

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/mail"
	"slices"
	"strings"

	"github.com/countersign-run/countersign/shared/testkit/fakegithub"
	"github.com/countersign-run/countersign/shared/testkit/fakegoogle"
	"github.com/countersign-run/countersign/shared/testkit/invariants"
	"github.com/countersign-run/countersign/shared/tools/calendar"
	"github.com/countersign-run/countersign/shared/tools/gmail"
)

// IssuesOf returns the issues and pull requests that were opened in repositories of the account at GitHub, as effects
// of the user.
func (c *Cloud) IssuesOf(uid, owner string) (all []invariants.Effect) {
	for _, repo := range c.GitHub.View() {
		if !strings.HasPrefix(repo.Repository, owner+"/") {
			continue
		}
		for _, i := range repo.Issues {
			_, marked, _ := strings.Cut(i.Body, "<!-- countersign:")
			action, _, _ := strings.Cut(marked, " -->")
			all = append(all, invariants.Effect{UID: uid, ActionID: action,
				Agrees: func(args json.RawMessage) error { return opened(i, args) }})
		}
	}
	return all
}

// opened returns the difference between the issue and the approved arguments.
func opened(i fakegithub.IssueView, args json.RawMessage) error {
	var want struct{ Title, Body, Head, Base string }
	if err := json.Unmarshal(args, &want); err != nil {
		return err
	}
	if i.Title != want.Title || i.Head != want.Head || i.Base != want.Base || !strings.HasPrefix(i.Body, want.Body) {
		return fmt.Errorf("the issue is %q: %q", i.Title, i.Body)
	}
	return nil
}

// Effects returns the effects at Gmail and Calendar, each with its action's ID.
func (c *Cloud) Effects() []invariants.Effect {
	return c.effects(func(string) bool { return true })
}

// EffectsOf returns one user's effects.
func (c *Cloud) EffectsOf(uid string) []invariants.Effect {
	return c.effects(func(address string) bool { return address == Address(uid) })
}

func (c *Cloud) effects(of func(address string) bool) (all []invariants.Effect) {
	for _, m := range c.Google.Messages() {
		if !of(m.User) {
			continue
		}
		all = append(all, invariants.Effect{UID: uidOf(m.User), ActionID: actionOf(m.Raw),
			Agrees: func(args json.RawMessage) error { return Sent(m, args) }})
	}
	for _, e := range c.Google.Events() {
		if !of(text(e["user"])) {
			continue
		}
		all = append(all, invariants.Effect{UID: uidOf(text(e["user"])), ActionID: propertyOf(e),
			Agrees: func(args json.RawMessage) error { return Made(e, args) }})
	}
	return all
}

// Deleted returns the events that were deleted from the user's calendar.
func (c *Cloud) Deleted(uid string) (all []fakegoogle.Event) {
	for _, e := range c.Google.Events() {
		if e["user"] == Address(uid) && e["status"] == "cancelled" {
			all = append(all, e)
		}
	}
	return all
}

func uidOf(address string) string { return strings.TrimSuffix(address, "@example.com") }

// actionOf reads the action's ID from a message's header.
func actionOf(raw string) string {
	m, err := mail.ReadMessage(strings.NewReader(raw))
	if err != nil {
		return ""
	}
	return m.Header.Get("X-Countersign-Action")
}

func propertyOf(e fakegoogle.Event) string {
	properties, _ := e["extendedProperties"].(map[string]any)
	private, _ := properties["private"].(map[string]any)
	return text(private["countersignAction"])
}

func text(v any) string { s, _ := v.(string); return s }

// Sent compares a sent message with the arguments of gmail_send. It returns an error for any
// difference, such as an additional recipient.
func Sent(m fakegoogle.Message, args json.RawMessage) error {
	var a gmail.Args
	if err := json.Unmarshal(args, &a); err != nil {
		return err
	}
	raw := strings.ToLower(m.Raw)
	same := slices.Equal(m.To, a.To) && slices.Equal(m.Cc, a.Cc) && slices.Equal(m.Bcc, a.Bcc) &&
		strings.Count(raw, "\nbcc:")+strings.Count(raw, "\ncc:") <= 2
	words := a.Body
	if a.Origin != nil && a.Origin.Quote != "" {
		words += "\n\n" + a.Origin.Quote
	}
	if !same || m.Subject != a.Subject || unix(m.Text) != unix(words) || a.Origin == nil &&
		unix(m.HTML) != unix(a.HTMLBody) {
		return fmt.Errorf("the message %s is not the one that was approved", m.ID)
	}
	if !slices.EqualFunc(m.Files, a.Attachments, func(f fakegoogle.File, e gmail.Enclosure) bool {
		return e.Is != nil && f.SHA256 == e.Is.SHA256 && f.Name == e.Is.Name
	}) {
		return fmt.Errorf("the message %s has files that were not approved", m.ID)
	}
	if from := SenderOf(m.Raw); from != cmp.Or(a.From, m.User) {
		return fmt.Errorf("the message %s was sent as %q, which was not approved", m.ID, from)
	}
	return nil
}

// SenderOf reads the address in a message's From header.
func SenderOf(raw string) string {
	m, err := mail.ReadMessage(strings.NewReader(raw))
	if err != nil {
		return ""
	}
	from, err := mail.ParseAddress(m.Header.Get("From"))
	if err != nil {
		return ""
	}
	return from.Address
}

// unix converts the line ends of e-mail to line feeds, as arguments have them, and removes those at the end.
func unix(text string) string { return strings.TrimRight(strings.ReplaceAll(text, "\r\n", "\n"), "\n") }

// Made compares an event with the arguments of calendar_event_create, and returns a difference.
func Made(e fakegoogle.Event, args json.RawMessage) error {
	var a calendar.Args
	if err := json.Unmarshal(args, &a); err != nil {
		return err
	}
	if text(e["summary"]) != a.Summary || text(e["description"]) != a.Description ||
		text(e["location"]) != a.Location || !slices.Equal(Guests(e), a.Attendees) ||
		text(e["sendUpdates"]) != cmp.Or(a.SendUpdates, "none") || at(e["start"]) != a.Start || at(e["end"]) != a.End {
		return fmt.Errorf("the event %s is not the one that was approved", text(e["id"]))
	}
	return nil
}

// Guests returns the addresses that an event invites.
func Guests(e fakegoogle.Event) (out []string) {
	list, _ := e["attendees"].([]any)
	for _, g := range list {
		guest, _ := g.(map[string]any)
		out = append(out, text(guest["email"]))
	}
	return out
}

// at returns the instant or the day of an event's start or end.
func at(v any) string {
	m, _ := v.(map[string]any)
	return cmp.Or(text(m["dateTime"]), text(m["date"]))
}
